"""A private Redis or Valkey."""

from __future__ import annotations

import secrets
from pathlib import Path

import redis

from orchestrata_memory.embedded.commands import RedisOptions, redis_config, write_private
from orchestrata_memory.embedded.programs import find_redis_server
from tests.servers.process import ServerProcess, ServerStartError, free_port

START_SECONDS = 30.0
ATTEMPTS = 4


class RedisServer:
    """Append-only file, flushed at every write; data and port stay over `kill` and `start`.

    Without a `program` it runs the server that the engine would start.
    """

    def __init__(
        self, folder: Path, *, extra_config: str = "", program: Path | None = None
    ) -> None:
        self._folder = folder
        self.program = program
        self._extra = extra_config
        self.password = secrets.token_urlsafe(18)
        self.port = 0
        self._process: ServerProcess | None = None

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def client(self) -> redis.Redis:
        """A blocking client with text answers."""
        return redis.Redis.from_url(self.url, decode_responses=True)

    def start(self) -> RedisServer:
        """Start, or start again on the same data and port."""
        if self.port:
            self._start_on(self.port)
            return self
        for attempt in range(ATTEMPTS):
            try:
                self._start_on(free_port())
            except ServerStartError:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return self
        raise AssertionError

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def flush(self) -> None:
        """Delete everything, and undo what a test may have set."""
        with self.client() as client:
            client.flushall()
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("appendfsync", "always")

    def _start_on(self, port: int) -> None:
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        config = self._folder / "redis.conf"
        options = RedisOptions(folder=data, port=port, password=self.password)
        write_private(config, redis_config(options) + self._extra)
        self._process = ServerProcess(
            [str(self.program or find_redis_server()), str(config)], self._folder / "redis.log"
        )
        self._process.start()
        self.port = port
        try:
            self._process.wait_until(self._answers, START_SECONDS)
        except ServerStartError:
            self._process.stop()
            self.port = 0
            raise

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.AuthenticationError as error:
            raise ServerStartError("another server has the port") from error
        except (redis.ConnectionError, redis.BusyLoadingError):
            return False
