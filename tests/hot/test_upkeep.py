"""The sweep restores what cold lacks and collects what expiry left."""

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
NOTHING = dict.fromkeys(
    ("restored", "requeued", "entries", "index", "tags", "vectors", "pointers", "sessions"), 0
)


async def test_a_tidy_store_is_left_alone(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    await hot.attach_vectors({"k1": vector()})
    await store(hot, key="sum", sources=("k1",), source_versions=(1,))
    await hot.promote(READER, record("cold"), vector())
    await hot.tombstone(await store(hot, key="gone"), audit("delete"))
    await store(hot, key="k2")
    before = {name: raw.dump(name) for name in _names(raw)}
    assert await hot.sweep() == NOTHING
    assert {name: raw.dump(name) for name in _names(raw)} == before
    assert (await hot.read(["k1"]))["k1"].record == made


def _names(raw: redis.Redis) -> list[str]:
    return [name for name in raw.keys("*") if not name.endswith((":outbox",))]


async def test_a_hash_that_expired_before_cold_had_it_is_restored(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    made = await store(hot, key="k1")
    buried = await store(hot, key="k2")
    for each in await hot.take("w", count=10, block_seconds=0):
        if each.key == "k2":
            await hot.bury(each.outbox_id, "refused")
    raw.delete(
        keys.entry(SESSION, OWNER, "k1"),
        keys.entry(SESSION, OWNER, "k2"),
        keys.index(SESSION, OWNER),
        keys.tagged(SESSION, OWNER, "pump"),
        keys.tagged(SESSION, OWNER, "heat"),
    )
    states = await hot.read(["k1", "k2"])
    assert (states["k1"].record, states["k2"].record) == (made, buried)
    cursor = (await hot.changes_since(None)).cursor
    assert await hot.sweep() == NOTHING | {"restored": 2}
    assert (await hot.changes_since(cursor)).keys == ("k1", "k2")
    assert raw.ttl(keys.entry(SESSION, OWNER, "k1")) > 86_390
    assert raw.zcard(keys.index(SESSION, OWNER)) == 2
    assert raw.smembers(keys.tagged(SESSION, OWNER, "pump")) == {"k1", "k2"}
    states = await hot.read(["k1", "k2"])
    assert (states["k1"].record, states["k2"].record) == (made, buried)
    assert await hot.sweep() == NOTHING


async def test_a_pending_ttl_is_renewed_before_it_runs_out(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="pending")
    await store(hot, key="confirmed")
    await drain_only(hot, "confirmed")
    for key in ("pending", "confirmed"):
        raw.expire(keys.entry(SESSION, OWNER, key), 1000)
    await hot.sweep()
    assert raw.ttl(keys.entry(SESSION, OWNER, "pending")) > 86_390
    assert raw.ttl(keys.entry(SESSION, OWNER, "confirmed")) <= 1000


async def drain_only(hot: RedisHotStore, key: str) -> None:
    taken = await hot.take("w", count=10, block_seconds=0)
    await hot.confirm([confirmation(each) for each in taken if each.key == key])


@pytest.mark.traces("REQ-010-034")
async def test_what_expiry_left_is_collected(hot: RedisHotStore, raw: redis.Redis) -> None:
    stays = await store(hot, key="stays")
    await store(hot, key="gone", tags=("pump", "only"))
    await hot.attach_vectors({"stays": vector(), "gone": vector()})
    await hot.promote(READER, record("cold", session_id="s0"), vector())
    await drain(hot)
    raw.delete(keys.entry(SESSION, OWNER, "gone"), keys.entry(READER, OWNER, "cold"))
    cursor = (await hot.changes_since(None)).cursor
    counts = await hot.sweep()
    assert set((await hot.changes_since(cursor)).keys) == {"gone", "cold"}
    assert counts["restored"] == counts["requeued"] == 0
    assert counts["pointers"] >= 2
    await hot.sweep()
    assert await hot.sweep() == NOTHING
    assert raw.zrange(keys.index(SESSION, OWNER), 0, -1) == ["stays"]
    assert raw.smembers(keys.tagged(SESSION, OWNER, "pump")) == {"stays"}
    assert raw.zrange(keys.embedding_index(SESSION), 0, -1) == ["stays"]
    left = {
        name
        for name in raw.keys("*")
        if "gone" in name or "cold" in name or ":only" in name or READER in name
    }
    assert left == {keys.pointer("gone"), keys.pointer("cold")}
    assert all(0 < raw.ttl(name) <= 600 for name in left)
    assert (await hot.read(["stays"]))["stays"].record == stays


async def test_leftovers_without_a_pointer_are_collected(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="k1")
    await hot.attach_vectors({"k1": vector()})
    await drain(hot)
    raw.delete(keys.pointer("k1"), keys.entry(SESSION, OWNER, "k1"))
    raw.sadd(keys.summaries("k1"), "no such summary")
    raw.hset(keys.replicas(READER), "ghost", OWNER)
    raw.sadd(keys.copies("ghost"), READER)
    counts = await hot.sweep()
    assert counts["index"] == 3, "the index, the embedding index, the session"
    assert counts["tags"] == 2
    assert counts["vectors"] == 1
    assert counts["pointers"] == 3
    kinds = {keys.parse(name).kind for name in raw.keys("*")}
    assert kinds == {keys.NameKind.OTHER, keys.NameKind.POSITIONS}


async def test_hashes_that_nothing_leads_to_are_dropped(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="k1")
    await drain(hot)
    await hot.promote(READER, record("cold"), vector())
    raw.delete(keys.pointer("k1"), keys.copies("cold"))
    counts = await hot.sweep()
    assert counts["entries"] == 2
    assert not raw.exists(keys.entry(SESSION, OWNER, "k1"), keys.entry(READER, OWNER, "cold"))
    assert not raw.exists(keys.index(SESSION, OWNER), keys.index(READER, OWNER))


async def test_large_collections_are_stepped_through(hot: RedisHotStore, raw: redis.Redis) -> None:
    await store(hot, key="stays", tags=("pump",))
    raw.zadd(keys.index(SESSION, OWNER), {f"ghost:{n}": n for n in range(1500)})
    raw.sadd(keys.tagged(SESSION, OWNER, "pump"), *(f"ghost:{n}" for n in range(1500)))
    raw.sadd(keys.session(SESSION), *(f"ghost:{n}" for n in range(1500)))
    raw.hset(keys.replicas(SESSION), mapping={f"ghost:{n}": OWNER for n in range(1500)})
    counts = await hot.sweep()
    assert (counts["index"], counts["tags"], counts["pointers"]) == (3000, 1500, 1500)
    assert raw.zrange(keys.index(SESSION, OWNER), 0, -1) == ["stays"]
    assert raw.smembers(keys.tagged(SESSION, OWNER, "pump")) == {"stays"}
    assert raw.smembers(keys.session(SESSION)) == {"stays"}


async def test_a_pending_state_whose_record_is_lost_is_queued_again(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    made = await store(hot, key="k1")
    gone = await store(hot, key="k2")
    await drain(hot)
    made = later(made)
    await hot.replace(made, audit("update"), expected_version=1)
    await hot.tombstone(gone, audit("delete"))
    raw.delete(keys.OUTBOX)
    counts = await hot.sweep()
    assert counts["requeued"] == 2
    taken = await drain(hot)
    assert {(each.kind.value, each.key, each.version) for each in taken} == {
        ("put", "k1", 2),
        ("delete", "k2", 2),
    }
    assert next(each.record for each in taken if each.key == "k1") == made


async def test_sessions_closed_long_ago_are_forgotten(hot: RedisHotStore, raw: redis.Redis) -> None:
    await hot.census(["all"])
    await hot.seed_census({"all": 0})
    await store(hot, session_id="old")
    await store(hot, session_id="busy")
    await drain(hot)
    for session in ("old", "busy", "recent"):
        await hot.mark_closed(session)
    for key in await hot.session_keys("old"):
        await hot.move_out(key, 1)
    raw.zadd(keys.CLOSED, {"old": 1, "busy": 1})
    assert (await hot.sweep())["sessions"] == 1
    assert [await hot.is_closed(each) for each in ("old", "busy", "recent")] == [False, True, True]
    counts = await hot.census(["all", "session:old", "session:busy", "session:never"])
    assert counts == {"all": 2, "session:old": 1, "session:busy": 1, "session:never": 0}


async def test_an_expired_confirmed_entry_is_cold(hot: RedisHotStore, raw: redis.Redis) -> None:
    await store(hot, key="k1")
    await drain(hot)
    raw.delete(keys.entry(SESSION, OWNER, "k1"))
    state = (await hot.read(["k1"]))["k1"]
    assert (state.state, state.version, state.record) == (KeyState.COLD, 1, None)
    await hot.sweep()
    assert (await hot.read(["k1"]))["k1"].state is KeyState.COLD


async def test_confirming_an_expired_entry_leaves_a_marker(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="k1")
    raw.delete(keys.entry(SESSION, OWNER, "k1"))
    await drain(hot)
    assert (await hot.read(["k1"]))["k1"].state is KeyState.COLD
    assert not raw.exists(keys.session(SESSION), keys.index(SESSION, OWNER))
