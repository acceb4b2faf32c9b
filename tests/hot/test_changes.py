"""The change log: strictly what was acknowledged, and honest about gaps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import redis

from orchestrata_memory.hot import keys
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import Delegation
from tests.hot.making import audit, drain, later, record, store, vector

pytestmark = pytest.mark.servers


async def test_every_acknowledged_change_is_seen_by_another(
    hot: RedisHotStore, other: RedisHotStore
) -> None:
    start = await other.changes_since(None)
    assert (start.keys, start.complete) == ((), True)
    made = await store(hot, key="k1")
    await store(hot, key="k2")
    await hot.replace(later(made), audit("update"), expected_version=1)
    seen = await other.changes_since(start.cursor)
    assert (seen.keys, seen.complete, seen.delegations_changed) == (("k1", "k2"), True, False)
    nothing = await other.changes_since(seen.cursor)
    assert (nothing.keys, nothing.complete, nothing.cursor) == ((), True, seen.cursor)
    await hot.tombstone(later(made), audit("delete"))
    await hot.promote("session-2", record("k3"), vector())
    assert (await other.changes_since(seen.cursor)).keys == ("k1", "k3")


async def test_the_census_is_of_the_same_moment(hot: RedisHotStore) -> None:
    names = ["session:session-1", "session:other"]
    await hot.seed_census({names[0]: 0})
    start = await hot.changes_since(None, counted=names)
    assert start.counts == {names[0]: 0, names[1]: None}
    await store(hot, key="k1")
    seen = await hot.changes_since(start.cursor, counted=names)
    assert (seen.keys, seen.counts[names[0]]) == (("k1",), 1)
    quiet = await hot.changes_since(seen.cursor, counted=names)
    assert (quiet.keys, quiet.counts[names[0]]) == ((), 1)
    assert (await hot.changes_since(seen.cursor)).counts == {}


async def test_moving_out_is_a_change(hot: RedisHotStore) -> None:
    await store(hot, key="k1")
    await drain(hot)
    cursor = (await hot.changes_since(None)).cursor
    await hot.move_out("k1", 1)
    assert (await hot.changes_since(cursor)).keys == ("k1",)


async def test_delegations_are_told_apart(hot: RedisHotStore) -> None:
    cursor = (await hot.changes_since(None)).cursor
    given = Delegation(delegator="A", delegate="B", created_at=datetime.now(UTC))
    await hot.put_delegation(given, audit("delegate"))
    seen = await hot.changes_since(cursor)
    assert (seen.keys, seen.delegations_changed) == ((), True)


async def test_a_trimmed_log_is_incomplete(hot: RedisHotStore, raw: redis.Redis) -> None:
    await store(hot, key="k1")
    cursor = (await hot.changes_since(None)).cursor
    for number in range(3):
        await store(hot, key=f"x{number}")
    raw.xtrim(keys.CHANGES, maxlen=2, approximate=False)
    seen = await hot.changes_since(cursor)
    assert not seen.complete
    assert (await hot.changes_since(seen.cursor)).complete


@pytest.mark.parametrize("writes", [0, 1, 5])
async def test_a_server_that_lost_its_end_is_incomplete(
    hot: RedisHotStore, raw: redis.Redis, writes: int
) -> None:
    await store(hot, key="k1")
    await store(hot, key="k2")
    cursor = (await hot.changes_since(None)).cursor
    raw.xdel(keys.CHANGES, cursor)
    for number in range(writes):
        await store(hot, key=f"x{number}")
    assert not (await hot.changes_since(cursor)).complete
    raw.flushall()
    for number in range(writes):
        await store(hot, key=f"x{number}")
    assert not (await hot.changes_since(cursor)).complete


async def test_scan_knows_every_key(hot: RedisHotStore) -> None:
    made = [await store(hot, key=f"k:{n}") for n in range(900)][:1]
    await hot.tombstone(made[0], audit("delete"))
    await hot.promote("session-2", record("re*pli:ca"), vector())
    found = {key async for batch in hot.scan() for key in batch}
    assert found == {f"k:{n}" for n in range(900)} | {"re*pli:ca"}
