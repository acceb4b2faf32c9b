"""A hot store on an emptied private server, and a blocking client to look behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.hot.store import RedisHotStore
from tests.servers.redis import RedisServer


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
