"""Closing, moving out, promotion: rule by rule."""

from __future__ import annotations

import pytest
import redis

from orchestrata_memory.hot import keys
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import KeyState
from tests.hot.making import (
    OWNER,
    SESSION,
    audit,
    confirmation,
    drain,
    later,
    record,
    store,
    vector,
)

pytestmark = pytest.mark.servers

READER = "session-2"


@pytest.mark.traces("REQ-010-032")
async def test_a_session_moves_out_entry_by_entry(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = [await store(hot, key=f"k{n}") for n in range(3)]
    elsewhere = await store(hot, key="elsewhere", session_id="session-10")
    await hot.attach_vectors({each.key: vector() for each in made})
    await hot.mark_closed(SESSION)
    assert await hot.is_closed(SESSION)
    assert not await hot.is_closed("session-10")
    assert await hot.closed_sessions() == [SESSION]
    held = await hot.session_keys(SESSION)
    assert {key: state.record for key, state in held.items()} == {each.key: each for each in made}
    assert not await hot.move_out("k0", 1), "it is still pending"
    await hot.confirm([])
    taken = await hot.take("w", count=10, block_seconds=0)
    assert len(taken) == 4
    await drain_of(hot, taken)
    assert await hot.session_keys(SESSION) == {}
    assert await hot.closed_sessions() == []
    left = {name for name in raw.keys("*") if keys.parse(name).kind is not keys.NameKind.POINTER}
    assert not [name for name in left if SESSION + ":" in name or ":embed:" in name]
    assert (await hot.read(["elsewhere"]))["elsewhere"].record == elsewhere


async def drain_of(hot: RedisHotStore, taken: list) -> list[str]:
    return await hot.confirm([confirmation(each) for each in taken])


async def test_move_out_of_a_confirmed_entry(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    await drain(hot)
    assert not await hot.move_out("k1", 0)
    assert await hot.move_out("k1", 1)
    assert not await hot.move_out("k1", 1)
    state = (await hot.read(["k1"]))["k1"]
    assert (state.state, state.version) == (KeyState.COLD, 1)
    assert not raw.exists(keys.entry(SESSION, OWNER, "k1"))
    await hot.replace(later(made), audit("update"), expected_version=1)
    assert not await hot.move_out("k1", 2)


async def test_the_migration_lock(hot: RedisHotStore, other: RedisHotStore) -> None:
    assert await hot.lock_session(SESSION, "a", 5)
    assert await hot.lock_session(SESSION, "a", 5)
    assert not await other.lock_session(SESSION, "b", 5)
    await other.unlock_session(SESSION, "b")
    assert not await other.lock_session(SESSION, "b", 5)
    await hot.unlock_session(SESSION, "a")
    assert await other.lock_session(SESSION, "b", 5)


async def test_the_long_ttl(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    await hot.attach_vectors({"k1": vector()})
    await hot.extend_ttl("k1")
    week = 7 * 86_400
    for name in (
        keys.entry(SESSION, OWNER, "k1"),
        keys.index(SESSION, OWNER),
        keys.tagged(SESSION, OWNER, "pump"),
        keys.embedding("k1"),
        keys.vector("k1"),
        keys.embedding_index(SESSION),
    ):
        assert week - 10 < raw.ttl(name) <= week, name
    assert raw.ttl(keys.pointer("k1")) == -1
    await hot.replace(later(made), audit("update"), expected_version=1)
    assert raw.ttl(keys.entry(SESSION, OWNER, "k1")) > week - 10, "a write never shortens it"
    await store(hot, key="k2")
    assert raw.ttl(keys.index(SESSION, OWNER)) > week - 10, "the index lives as its longest member"
    raw.delete(keys.entry(SESSION, OWNER, "k2"))
    await hot.extend_ttl("k2")
    assert raw.ttl(keys.entry(SESSION, OWNER, "k2")) > week - 10
    await hot.extend_ttl("unknown")


@pytest.mark.traces("REQ-010-033")
async def test_a_replica_is_read_as_cold(hot: RedisHotStore, raw: redis.Redis) -> None:
    cold = record("k1", version=3, position=4)
    assert await hot.promote(READER, cold, vector(3))
    state = (await hot.read(["k1"]))["k1"]
    assert (state.state, state.version, state.record) == (KeyState.COLD, 3, cold)
    assert state.replica
    assert state.expires_at is not None
    name = keys.entry(READER, OWNER, "k1")
    assert raw.hget(name, "replica") == "1"
    assert 86_390 < raw.ttl(name) <= 86_400
    assert raw.zrange(keys.index(READER, OWNER), 0, -1) == ["k1"]
    assert raw.smembers(keys.tagged(READER, OWNER, "pump")) == {"k1"}
    assert raw.zscore(keys.embedding_index(READER), "k1") == 0
    assert set(await hot.vectors(["k1"])) == {"k1"}
    assert await hot.session_keys(SESSION) == {}
    assert await hot.session_keys(READER) == {}
    assert [batch async for batch in hot.scan()] == [["k1"]]


@pytest.mark.traces("REQ-010-033")
async def test_promotion_never_shortens_a_ttl(hot: RedisHotStore, raw: redis.Redis) -> None:
    cold = record("k1")
    await hot.promote(READER, cold, vector())
    names = [name for name in raw.keys("*") if raw.pttl(name) > 0]
    for name in names:
        raw.expire(name, 500_000)
    assert await hot.promote(READER, cold, vector())
    for name in names:
        assert raw.ttl(name) > 499_000, name
    for name in names:
        raw.expire(name, 100)
    assert await hot.promote(READER, cold, vector())
    for name in names:
        assert raw.ttl(name) > 86_000, name


async def test_what_is_not_promoted(hot: RedisHotStore, raw: redis.Redis) -> None:
    await hot.mark_closed("closed")
    assert not await hot.promote("closed", record("k0"), vector())
    live = await store(hot, key="k1")
    assert not await hot.promote(READER, live, vector())
    assert not await hot.promote(SESSION, live, vector())
    assert raw.hget(keys.entry(SESSION, OWNER, "k1"), "replica") == "0"
    await hot.tombstone(live, audit("delete"))
    assert not await hot.promote(READER, live, vector())
    await drain(hot)
    assert not await hot.promote(READER, live, vector()), "the marker remembers"
    newer = record("k2", version=2)
    assert await hot.promote(READER, newer, vector(2))
    assert not await hot.promote("session-3", record("k2", version=1), vector())


async def test_a_write_drops_every_copy(hot: RedisHotStore, raw: redis.Redis) -> None:
    cold = record("k1", version=3)
    for session in (READER, "session-3", SESSION):
        assert await hot.promote(session, cold, vector(3))
    new = later(cold, tags=("pump",))
    await hot.replace(new, audit("update"), expected_version=3)
    assert (await hot.read(["k1"]))["k1"].record == new
    entries = [name for name in raw.keys("*") if keys.parse(name).kind is keys.NameKind.ENTRY]
    assert entries == [keys.entry(SESSION, OWNER, "k1")]
    assert raw.hget(entries[0], "replica") == "0"
    assert not raw.exists(keys.index(READER, OWNER), keys.tagged(READER, OWNER, "heat"))
    assert not raw.exists(keys.copies("k1"), keys.replicas(READER), keys.vector("k1"))


async def test_a_deletion_drops_every_copy(hot: RedisHotStore, raw: redis.Redis) -> None:
    cold = record("k1", version=3)
    for session in (READER, SESSION):
        await hot.promote(session, cold, vector(3))
    await hot.tombstone(cold, audit("delete"))
    kinds = {keys.parse(name).kind for name in raw.keys("*")}
    assert kinds == {keys.NameKind.POINTER, keys.NameKind.OTHER}


async def test_replicas_are_dropped_with_their_session(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    for number in range(3):
        await hot.promote(READER, record(f"k{number}"), vector())
    await hot.promote("session-3", record("k0"), vector())
    await hot.mark_closed(READER)
    assert await hot.closed_sessions() == [READER]
    assert await hot.drop_replicas(READER) == 3
    assert await hot.drop_replicas(READER) == 0
    states = await hot.read(["k0", "k1"])
    assert states["k0"].replica
    assert states["k1"].record is None
    assert set(await hot.vectors(["k0", "k1", "k2"])) == {"k0"}, (
        "the vector goes with the last copy"
    )
    assert raw.ttl(keys.pointer("k1")) <= 600
    assert await hot.closed_sessions() == []


async def test_dropping_replicas_spares_the_home_entry(hot: RedisHotStore) -> None:
    cold = record("k1")
    await hot.promote(SESSION, cold, vector())
    new = later(cold)
    await hot.replace(new, audit("update"), expected_version=1)
    assert await hot.drop_replicas(SESSION) == 0
    assert (await hot.read(["k1"]))["k1"].record == new


async def test_sessions_with_a_common_prefix_stay_apart(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    for session in ("conv1", "conv10", "conv1:index", "conv%31"):
        await store(hot, key=f"in {session}", session_id=session)
    assert set(await hot.session_keys("conv1")) == {"in conv1"}
    await drain(hot)
    await hot.mark_closed("conv1")
    assert await hot.move_out("in conv1", 1)
    for session in ("conv10", "conv1:index", "conv%31"):
        assert set(await hot.session_keys(session)) == {f"in {session}"}
