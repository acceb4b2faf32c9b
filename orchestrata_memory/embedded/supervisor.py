"""Runs one embedded server for as long as somebody uses it.

``python -m orchestrata_memory.embedded.supervisor DATA_DIR redis|graph [OPTIONS as JSON]``

A process of its own, so that the server outlives an engine that is killed, and several engines
share it. It starts the server, writes where it is, starts it again on the same ports when it
dies, and stops it cleanly when the last user's lock is gone. Should the supervisor itself be
killed, the system ends the server too, and whoever comes next waits for the server's lock before
it touches the data.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from orchestrata_memory.embedded.kinds import (
    ArcadeKind,
    Ports,
    RedisKind,
    ServerKind,
    ServerOptions,
)
from orchestrata_memory.embedded.layout import PartFolder, Phase, ServerState
from orchestrata_memory.embedded.locks import FileLock
from orchestrata_memory.embedded.server_process import (
    ServerDiedError,
    ServerProcess,
    bounded_handler,
    kill_leftover,
)
from orchestrata_memory.errors import MemoryConfigurationError

WATCH_SECONDS = 1.0
LOCK_POLL_SECONDS = 0.05
TAKE_SECONDS = 5.0
"""A status request may hold the supervisor's lock for a moment."""
KILLED_SECONDS = 10.0
PORT_ATTEMPTS = 5
RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
ARGUMENTS = (3, 4)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RestartBudget:
    """At most `RESTARTS` in a window of `RESTART_WINDOW_SECONDS`."""

    times: list[float] = field(default_factory=list)

    def spend(self, now: float) -> bool:
        """Whether one more is allowed; `now` is in seconds."""
        self.times = [at for at in self.times if now - at < RESTART_WINDOW_SECONDS]
        self.times.append(now)
        return len(self.times) <= RESTARTS


class Supervisor:
    """One server's keeper. Its lock is taken by whoever creates it."""

    def __init__(
        self, folder: PartFolder, kind: ServerKind, linger_seconds: float, left: ServerState | None
    ) -> None:
        self._folder = folder
        self._kind = kind
        self._linger = linger_seconds
        self._left = left
        self._users = FileLock(folder.users_lock)
        self._server_lock = FileLock(folder.server_lock)
        self._server: ServerProcess | None = None
        self._stop = asyncio.Event()
        self._starting: asyncio.Task[object] | None = None
        self._fsync = "always"
        self._ports = Ports(main=0)

    async def run(self, fsync: str) -> int:
        """Until nobody uses the server, or a signal; the exit code."""
        self._fsync = fsync
        self._starting = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        try:
            await self._take_data()
            await self._start_somewhere()
            self._starting = None
            await self._watch()
        except asyncio.CancelledError:
            logger.info("told to end while starting")
        except MemoryConfigurationError as error:
            return self._fail(str(error))
        except ServerDiedError as error:
            return self._fail(f"{error}; its log ends:\n{self._folder.last_log_lines()}")
        finally:
            await self._shut_down()
        self._folder.clear_state()
        self._users.release()
        return 0

    def _end(self) -> None:
        self._stop.set()
        if self._starting is not None:
            self._starting.cancel()

    async def _take_data(self) -> None:
        """Wait until no earlier server has the data any more, and lock it."""
        if await take(self._server_lock, self._kind.stop_seconds):
            return
        logger.warning("an earlier server did not end by itself: killing it")
        if kill_leftover(self._left) and await take(self._server_lock, KILLED_SECONDS):
            return
        raise MemoryConfigurationError(
            f"another process still uses the data in {self._folder.data}: end it first"
        )

    async def _start_somewhere(self) -> None:
        """Start on free ports; another process may take them first, so try a few.

        The ports of a supervisor that was killed come first: its users still call there.
        """
        for attempt in range(PORT_ATTEMPTS):
            self._ports = self._kind.choose_ports()
            if attempt == 0 and self._left is not None and self._left.port:
                self._ports = Ports(main=self._left.port, http=self._left.http_port)
            try:
                await self._start()
            except ServerDiedError:
                taken = self._server is not None and self._server.port_taken
                if not taken or attempt == PORT_ATTEMPTS - 1:
                    raise
            else:
                return

    async def _start(self) -> None:
        self._server = ServerProcess(self._kind, self._folder, self._folder.password())
        await self._server.start(self._ports, self._server_lock.descriptor)
        self._say("ready")
        logger.info("%s serves on port %d", self._folder.part, self._ports.main)

    async def _watch(self) -> None:
        budget, idle_since = RestartBudget(), 0.0
        while not await self._stopped_within(WATCH_SECONDS):
            assert self._server is not None  # noqa: S101 - started before
            if not self._server.pid:
                await self._start_again(budget)
            if not self._users.try_exclusive():
                idle_since = 0.0
                continue
            now = time.monotonic()
            idle_since = idle_since or now
            if now - idle_since >= self._linger:
                return  # holding the users' lock: newcomers wait until all is down
            self._users.release()

    async def _start_again(self, budget: RestartBudget) -> None:
        logger.warning("%s ended; starting it again", self._folder.part)
        self._say("restarting")
        while budget.spend(time.monotonic()):
            try:
                await self._start()
            except ServerDiedError as error:
                logger.warning("it did not start: %s", error)
                await asyncio.sleep(WATCH_SECONDS)
            else:
                return
        raise ServerDiedError(f"it died {RESTARTS} times within {RESTART_WINDOW_SECONDS:g} s")

    async def _stopped_within(self, seconds: float) -> bool:
        """Wait for a signal, the server's end or the time, whichever comes first."""
        assert self._server is not None  # noqa: S101 - started before
        waits = [
            asyncio.ensure_future(self._stop.wait()),
            asyncio.ensure_future(self._server.wait()),
        ]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._stop.is_set()

    async def _shut_down(self) -> None:
        if self._server is not None:
            logger.info("stopping %s", self._folder.part)
            state = self._folder.read_state()
            if state is not None and state.phase != "failed":
                self._folder.clear_state()
            await self._server.stop()
        self._server_lock.release()

    def _fail(self, problem: str) -> int:
        logger.error("%s failed: %s", self._folder.part, problem)
        self._say("failed", problem)
        return 1

    def _say(self, phase: Phase, problem: str = "") -> None:
        server = self._server
        self._folder.write_state(
            ServerState(
                phase=phase,
                problem=problem,
                supervisor_pid=os.getpid(),
                server_pid=server.pid if server else 0,
                server_created=server.created if server else 0.0,
                port=self._ports.main,
                http_port=self._ports.http,
                fsync=self._fsync,
            )
        )


async def take(lock: FileLock, seconds: float) -> bool:
    """Take a lock for oneself, waiting up to that long."""
    deadline = time.monotonic() + seconds
    while not lock.try_exclusive():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(LOCK_POLL_SECONDS)
    return True


def main() -> int:
    """Take the supervisor's lock, go into the background, supervise.

    The lock is taken before the fork and inherited, so whoever waited for this command to return
    knows that it is held.
    """
    if len(sys.argv) not in ARGUMENTS or sys.argv[2] not in {"redis", "graph"}:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    os.umask(0o077)
    folder = PartFolder(Path(sys.argv[1]), "redis" if sys.argv[2] == "redis" else "graph")
    folder.prepare()
    options = ServerOptions(**json.loads(sys.argv[3] if len(sys.argv) == max(ARGUMENTS) else "{}"))
    lock = FileLock(folder.supervisor_lock)
    deadline = time.monotonic() + TAKE_SECONDS
    while not lock.try_exclusive():
        if time.monotonic() > deadline:
            return 0  # another supervisor runs: as good
        time.sleep(LOCK_POLL_SECONDS)
    left = folder.read_state()
    folder.clear_state()
    if os.fork():
        os._exit(0)
    _let_go_of_the_caller()
    _log_to(folder)
    kind: ServerKind = RedisKind(options) if folder.part == "redis" else ArcadeKind(options)
    return asyncio.run(_supervise(folder, kind, options, left))


async def _supervise(
    folder: PartFolder, kind: ServerKind, options: ServerOptions, left: ServerState | None
) -> int:
    return await Supervisor(folder, kind, options.linger_seconds, left).run(options.fsync)


def _let_go_of_the_caller() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.chdir("/")


def _log_to(folder: PartFolder) -> None:
    handler = bounded_handler(folder.supervisor_log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("neo4j").setLevel(logging.ERROR)


if __name__ == "__main__":
    sys.exit(main())
