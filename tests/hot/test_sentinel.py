"""Through Sentinel: the master is found, and found again after a failover."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.hot.store import RedisHotStore
from tests.hot.making import audit, record
from tests.servers.process import ServerProcess, free_port
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers

_SECONDS = 40.0


class Sentinel:
    """One sentinel that watches one master and decides alone."""

    def __init__(self, folder: Path, master: RedisServer, replica: RedisServer) -> None:
        self.port = free_port()
        config = folder / "sentinel.conf"
        config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nprotected-mode no\n"
            f"sentinel monitor memory 127.0.0.1 {master.port} 1\n"
            f"sentinel auth-pass memory {master.password}\n"
            "sentinel down-after-milliseconds memory 500\n"
            "sentinel failover-timeout memory 3000\n"
        )
        command = [str(master.program), str(config), "--sentinel"]
        self._process = ServerProcess(command, folder / "sentinel.log")
        self._process.start()
        self._process.wait_until(lambda: self._knows_replica(replica), _SECONDS)

    def _knows_replica(self, replica: RedisServer) -> bool:
        try:
            with redis.Redis(port=self.port, decode_responses=True) as client:
                return any(
                    int(each["port"]) == replica.port and each["master-link-status"] == "ok"
                    for each in client.sentinel_slaves("memory")
                )
        except redis.RedisError:
            return False

    def stop(self) -> None:
        self._process.stop()


@pytest.fixture
def cluster(
    redis_server: RedisServer, tmp_path: Path
) -> Iterator[tuple[Sentinel, RedisServer, RedisServer]]:
    servers = []
    for name in ("master", "replica"):
        server = RedisServer(tmp_path / name, program=redis_server.program)
        server.password = "the-same~for+both"
        servers.append(server.start())
    master, replica = servers
    for server in servers:
        with server.client() as client:
            client.config_set("masterauth", server.password)
    with replica.client() as client:
        client.replicaof("127.0.0.1", str(master.port))
    sentinel = Sentinel(tmp_path, master, replica)
    yield sentinel, master, replica
    sentinel.stop()
    for server in servers:
        server.stop()


async def test_the_master_is_found_again_after_a_failover(
    cluster: tuple[Sentinel, RedisServer, RedisServer],
) -> None:
    sentinel, master, replica = cluster
    url = f"redis+sentinel://:the-same%7Efor%2Bboth@127.0.0.1:{sentinel.port}/memory"
    hot = RedisHotStore(RedisSettings(operation_timeout_seconds=2), url=url, outbox_limit=100)
    await hot.open()
    try:
        made = await hot.insert(record("before"), audit())
        with master.client() as client:
            assert client.wait(1, 5000) == 1
        master.kill()
        async with asyncio.timeout(_SECONDS):
            after = None
            while after is None:
                try:
                    after = await hot.insert(record("after"), audit())
                except MemoryUnavailableError:
                    await asyncio.sleep(0.2)
        with replica.client() as client:
            assert client.role()[0] == "master"
        states = await hot.read(["before", "after"])
        assert (states["before"].record, states["after"].record) == (made, after)
    finally:
        await hot.close()
