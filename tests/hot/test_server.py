"""The checks at start, health, and what a caller sees when the server is in trouble."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import redis
from pydantic import SecretStr

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryStorageError,
    MemoryUnavailableError,
)
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.connection import parse_url
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.interfaces.component import HealthStatus
from orchestrata_memory.models import KeyState
from tests.hot.making import OWNER, SESSION, audit, drain, later, record, store
from tests.servers.process import free_port
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers


@asynccontextmanager
async def opened(url: str, **settings) -> AsyncIterator[RedisHotStore]:
    hot = RedisHotStore(RedisSettings(**settings), url=url, outbox_limit=100)
    await hot.open()
    try:
        yield hot
    finally:
        await hot.close()


@pytest.mark.parametrize("scheme", ["redis+cluster", "rediss+cluster", "redis-cluster"])
def test_a_cluster_url_is_refused(scheme: str) -> None:
    with pytest.raises(MemoryConfigurationError, match="Cluster"):
        parse_url(f"{scheme}://h:1")


@pytest.mark.parametrize(
    "url", ["http://h", "h:6379", "redis+sentinel://h:1", "redis+sentinel://h:x/m", ""]
)
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(MemoryConfigurationError, match=r"redis\.url"):
        parse_url(url)


def test_sentinel_urls() -> None:
    address = parse_url("redis+sentinel://u:p%40@a:1,b,[::1]:3/my%20master?db=2")
    assert address.sentinels == (("a", 1), ("b", 26379), ("::1", 3))
    assert address.master == "my master"
    assert "p%40" not in repr(address)
    assert parse_url("redis://a:26379", "m").master == "m"


async def test_the_password_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for url in (
        f"redis://:s3cret@127.0.0.1:{free_port()}/0",
        "redis://:s3cret@127.0.0.1:pa:ss/0",
        f"redis+sentinel://:s3cret@127.0.0.1:{free_port()}/m",
    ):
        hot = RedisHotStore(
            RedisSettings(operation_timeout_seconds=1, url=SecretStr(url)), outbox_limit=1
        )
        assert "s3cret" not in repr(hot) + repr(vars(hot))
        with pytest.raises((MemoryUnavailableError, MemoryConfigurationError)) as caught:
            await hot.open()
        shown = "".join(traceback.format_exception(caught.value))
        assert "s3cret" not in shown
        assert "pa:ss" not in shown
    assert "s3cret" not in caplog.text


async def test_a_wrong_password(clean_redis: RedisServer) -> None:
    for url in (
        f"redis://:wrong@127.0.0.1:{clean_redis.port}/0",
        f"redis://127.0.0.1:{clean_redis.port}/0",
    ):
        with pytest.raises(MemoryConfigurationError, match="password"):
            async with opened(url):
                pass


async def test_a_closed_port() -> None:
    with pytest.raises(MemoryUnavailableError, match="cannot be reached"):
        async with opened(f"redis://127.0.0.1:{free_port()}/0"):
            pass


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random"])
async def test_a_server_that_may_evict_is_refused(
    clean_redis: RedisServer, raw: redis.Redis, policy: str
) -> None:
    raw.config_set("maxmemory-policy", policy)
    with pytest.raises(MemoryConfigurationError, match=policy):
        async with opened(clean_redis.url):
            pass


async def test_volatile_eviction_is_warned_of(hot: RedisHotStore, raw: redis.Redis) -> None:
    raw.config_set("maxmemory-policy", "volatile-lru")
    health = await hot.health()
    assert health.status is HealthStatus.DEGRADED
    assert "volatile-lru" in health.message


async def test_health_tells_durability_and_lag(hot: RedisHotStore, raw: redis.Redis) -> None:
    health = await hot.health()
    assert (health.status, health.message) == (HealthStatus.HEALTHY, "")
    assert health.details["durability"] == "always"
    await store(hot)
    details = (await hot.health()).details
    assert details["lag_records"] == 1
    assert details["lag_seconds"] >= 0
    raw.config_set("appendfsync", "everysec")
    health = await hot.health()
    assert health.status is HealthStatus.HEALTHY
    assert health.details["durability"] == "everysec"
    assert "appendfsync always" in health.message


async def test_a_cluster_node_is_refused(clean_redis: RedisServer, tmp_path) -> None:
    server = RedisServer(
        tmp_path, extra_config="\ncluster-enabled yes\n", program=clean_redis.program
    ).start()
    try:
        with pytest.raises(MemoryConfigurationError, match="cluster"):
            async with opened(server.url):
                pass
    finally:
        server.stop()


async def test_a_full_server(hot: RedisHotStore, raw: redis.Redis) -> None:
    """Stores are refused whole; reading, deleting and draining go on."""
    made = await store(hot, key="k1")
    await store(hot, key="k2")
    await store(hot, key="k3")
    await hot.mark_closed("closed")
    before = {name: raw.dump(name) for name in raw.keys("*")}
    raw.config_set("maxmemory", "1")
    for write in (
        hot.insert(record("new"), audit()),
        hot.insert(record("new", sources=("k1",), source_versions=(1,)), audit()),
        hot.replace(later(made), audit("update"), expected_version=1),
        hot.append_audit([audit()]),
        hot.claim("explicit", "token"),
    ):
        with pytest.raises(MemoryUnavailableError, match="full"):
            await write
    assert {name: raw.dump(name) for name in raw.keys("*")} == before
    assert (await hot.read(["k1"]))["k1"].record == made
    assert (await hot.health()).status is HealthStatus.UNHEALTHY
    await hot.tombstone(made, audit("delete"))
    assert len(await drain(hot)) == 4
    assert await hot.move_out("k2", 1)
    assert (await hot.read(["k1", "k2"]))["k1"].state is KeyState.DELETED


async def test_a_read_only_server(
    hot: RedisHotStore, raw: redis.Redis, clean_redis: RedisServer
) -> None:
    made = await store(hot, key="k1")
    raw.replicaof("127.0.0.1", str(free_port()))
    try:
        with pytest.raises(MemoryUnavailableError, match="read-only"):
            await store(hot, key="k2")
        assert (await hot.read(["k1"]))["k1"].record == made
        assert (await hot.health()).status is HealthStatus.UNHEALTHY
        with pytest.raises(MemoryUnavailableError, match="read-only"):
            async with opened(clean_redis.url):
                pass
    finally:
        raw.replicaof("NO", "ONE")


async def test_a_connection_that_went_stale_is_replaced(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await asyncio.gather(*(store(hot) for _ in range(10)))
    raw.client_kill_filter(skipme=True, _type="normal")
    made = await store(hot, key="k1")
    raw.client_kill_filter(skipme=True, _type="normal")
    assert (await hot.read(["k1"]))["k1"].record == made


async def test_a_restarted_server_has_everything(
    hot: RedisHotStore, clean_redis: RedisServer
) -> None:
    """Scripts are gone, the group is there, acknowledged writes are there."""
    made = await store(hot, key="k1")
    clean_redis.kill()
    with pytest.raises(MemoryUnavailableError):
        await hot.read(["k1"])
    assert (await hot.health()).status is HealthStatus.UNHEALTHY
    clean_redis.start()
    assert (await hot.read(["k1"]))["k1"].record == made
    await hot.read([f"{n}" for n in range(600)])
    assert [each.record for each in await drain(hot)] == [made]


async def test_a_server_that_does_not_answer(clean_redis: RedisServer, raw: redis.Redis) -> None:
    async with opened(clean_redis.url, operation_timeout_seconds=0.3) as hot:
        made = await store(hot, key="k1")
        raw.execute_command("CLIENT", "PAUSE", 700, "ALL")
        with pytest.raises(MemoryUnavailableError, match="in time"):
            await hot.read(["k1"])
        await asyncio.sleep(0.8)
        assert (await hot.read(["k1"]))["k1"].record == made


async def test_cancelling_leaves_the_connections_usable(hot: RedisHotStore) -> None:
    """An answer that comes after the cancellation is never taken for another's."""
    made = await store(hot, key="k1")
    for number in range(60):
        writing = asyncio.create_task(store(hot, key=f"c{number}", content=f"{number}" * 500))
        for _ in range(number % 12):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        state = (await hot.read([f"c{number}"]))[f"c{number}"]
        assert state.state in {KeyState.LIVE, KeyState.UNKNOWN}
        if state.record is not None:
            assert state.record.content == f"{number}" * 500
    waiting = asyncio.create_task(hot.take("w", count=1, block_seconds=2))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (await hot.read(["k1"]))["k1"].record == made


async def test_more_callers_than_connections(clean_redis: RedisServer) -> None:
    async with opened(clean_redis.url, max_connections=4) as hot:
        await asyncio.gather(*(store(hot, key=f"k{n}") for n in range(80)))
        states = await hot.read([f"k{n}" for n in range(80)])
        assert all(state.state is KeyState.LIVE for state in states.values())


async def test_a_damaged_copy_hides_no_other(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="good")
    await store(hot, record("bad", "CANARY"))
    raw.hset(keys.entry(SESSION, OWNER, "bad"), "version", "CANARY")
    states = await hot.read(["bad", "good"])
    assert states["good"].record == made
    assert states["bad"].state is KeyState.UNKNOWN
    with pytest.raises(MemoryStorageError, match="bad") as caught:
        await hot.read(["bad"])
    assert "CANARY" not in str(caught.value)


async def test_no_url() -> None:
    with pytest.raises(MemoryConfigurationError, match=r"redis\.url"):
        RedisHotStore(RedisSettings(), outbox_limit=1)


async def test_open_and_close_are_idempotent(clean_redis: RedisServer) -> None:
    hot = RedisHotStore(RedisSettings(), url=clean_redis.url, outbox_limit=1)
    await hot.close()
    await hot.open()
    await hot.open()
    await hot.close()
    await hot.close()
    with pytest.raises(MemoryConfigurationError, match="not open"):
        await hot.read(["k"])
    await hot.open()
    assert (await hot.read(["k"]))["k"].state is KeyState.UNKNOWN
    await hot.close()
