"""The outbox: taking, taking over, confirming, burying, reviving."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
import redis

from orchestrata_memory.hot import keys
from orchestrata_memory.hot.base import (
    BadOutboxRecord,
    Confirmation,
    OutboxKind,
    OutboxRecord,
    VersionConflictError,
)
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import Delegation, KeyState
from tests.hot.making import OWNER, SESSION, audit, confirmation, drain, later, record, store

pytestmark = pytest.mark.servers


async def test_a_record_carries_the_whole_entry(hot: RedisHotStore) -> None:
    made = await store(hot, record("k1", "日本 \U0001f600", summary="", metadata={"a": [1, None]}))
    [taken] = await hot.take("w", count=10, block_seconds=0)
    assert taken == OutboxRecord(
        outbox_id=taken.outbox_id, kind=OutboxKind.PUT, key="k1", version=1, record=made
    )
    assert await hot.take("w", count=10, block_seconds=0) == []


async def test_take_waits_for_a_record(hot: RedisHotStore) -> None:
    waiting = asyncio.create_task(hot.take("w", count=10, block_seconds=2))
    await asyncio.sleep(0.05)
    await store(hot, key="k1")
    assert [each.key for each in await waiting] == ["k1"]


async def test_what_a_consumer_left_is_taken_over(hot: RedisHotStore) -> None:
    for number in range(30):
        await store(hot, key=f"k{number:02}")
    await hot.take("crashed", count=30, block_seconds=0)
    assert await hot.take_over("w", idle_seconds=60, count=10) == []
    first = await hot.take_over("w", idle_seconds=0, count=10)
    assert [each.key for each in first] == [f"k{number:02}" for number in range(10)]
    assert {each.deliveries for each in first} == {1}
    again = await hot.take_over("w2", idle_seconds=0, count=1)
    assert again[0].deliveries == 2


async def test_idle_records_behind_busy_ones_are_found(hot: RedisHotStore) -> None:
    """The claim looks past any number of records that are not idle."""
    for number in range(40):
        await store(hot, key=f"k{number:02}")
    await hot.take("w", count=40, block_seconds=0)
    await asyncio.sleep(0.3)
    busy = [each.outbox_id for each in await hot.take_over("busy", idle_seconds=0, count=39)]
    assert len(busy) == 39
    found = await hot.take_over("w2", idle_seconds=0.25, count=1)
    assert [each.key for each in found] == ["k39"]


async def test_confirm_lets_the_record_go_and_the_ttl_run(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="k1")
    await drain(hot)
    assert await hot.outbox_length() == 0
    assert raw.xpending(keys.OUTBOX, "writers")["pending"] == 0
    assert (await hot.read(["k1"]))["k1"].state is KeyState.LIVE
    left = raw.pttl(keys.pointer("k1"))
    assert abs(left - raw.pttl(keys.entry(SESSION, OWNER, "k1"))) < 50


async def test_a_stale_confirm_never_deletes_a_newer_record(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    made = await store(hot, key="k1")
    await hot.replace(later(made), audit("update"), expected_version=1)
    first, second = await hot.take("w", count=10, block_seconds=0)
    await hot.confirm([Confirmation(outbox_id=second.outbox_id, key="k1", version=1)])
    assert await hot.outbox_length() == 2
    await hot.confirm([Confirmation(outbox_id=first.outbox_id, key="k1", version=1)])
    assert await hot.outbox_length() == 1
    assert raw.ttl(keys.pointer("k1")) == -1, "version 2 is still to come"
    await hot.confirm([Confirmation(outbox_id=second.outbox_id, key="k1", version=2)])
    assert raw.ttl(keys.pointer("k1")) > 0


async def test_confirming_again_changes_nothing(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    taken = await drain(hot)
    await hot.replace(later(made), audit("update"), expected_version=1)
    before = raw.hgetall(keys.pointer("k1"))
    assert await hot.confirm([confirmation(each) for each in taken]) == []
    assert raw.hgetall(keys.pointer("k1")) == before
    assert await hot.outbox_length() == 1


async def test_a_confirmed_tombstone_leaves_a_marker(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    await hot.tombstone(made, audit("delete"))
    await drain(hot)
    state = (await hot.read(["k1"]))["k1"]
    assert (state.state, state.version) == (KeyState.DELETED, 2)
    assert 590 < raw.ttl(keys.pointer("k1")) <= 600
    with pytest.raises(VersionConflictError):
        await hot.replace(later(made), audit("update"), expected_version=1)


async def test_confirm_moves_out_of_a_closed_session(hot: RedisHotStore, raw: redis.Redis) -> None:
    await hot.mark_closed(SESSION)
    await store(hot, key="k1")
    [taken] = await hot.take("w", count=10, block_seconds=0)
    assert await hot.confirm([confirmation(taken)]) == ["k1"]
    state = (await hot.read(["k1"]))["k1"]
    assert (state.state, state.version, state.record) == (KeyState.COLD, 1, None)
    assert 590 < raw.ttl(keys.pointer("k1")) <= 600
    assert not raw.exists(keys.entry(SESSION, OWNER, "k1"), keys.index(SESSION, OWNER))
    assert await hot.closed_sessions() == []


async def test_an_update_that_read_the_old_state_from_cold_fails(hot: RedisHotStore) -> None:
    """The marker stays longer than any operation takes."""
    await hot.mark_closed(SESSION)
    made = await store(hot, key="k1")
    await drain(hot)
    await hot.replace(later(made), audit("update"), expected_version=1)
    await drain(hot)
    assert (await hot.read(["k1"]))["k1"].state is KeyState.COLD
    with pytest.raises(VersionConflictError):
        await hot.replace(later(made, content="lost"), audit("update"), expected_version=1)


async def test_a_malformed_record_comes_as_bad_and_hides_no_other(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    raw.xadd(keys.OUTBOX, {"kind": "put", "key": "broken", "version": "1"})
    raw.xadd(keys.OUTBOX, {"kind": "nonsense", "key": "x", "version": "1"})
    raw.xadd(keys.OUTBOX, {"something": "else"})
    await store(hot, key="k1")
    taken = await hot.take("w", count=10, block_seconds=0)
    assert [type(each) for each in taken] == [BadOutboxRecord] * 3 + [OutboxRecord]
    for bad in taken[:3]:
        await hot.bury(bad.outbox_id, bad.problem)
    assert raw.xlen(keys.DEAD) == 3
    assert await hot.outbox_length() == 1


async def test_buried_and_revived(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    [taken] = await hot.take("w", count=10, block_seconds=0)
    await hot.bury(taken.outbox_id, "cold refuses it")
    await hot.bury(taken.outbox_id, "cold refuses it")
    raw.delete(keys.entry(SESSION, OWNER, "k1"))
    assert (await hot.read(["k1"]))["k1"].record == made, "a dead letter counts as hot"
    assert (raw.xlen(keys.DEAD), await hot.outbox_length()) == (1, 0)
    assert (await hot.health()).details["dead_letters"] == 1
    assert await hot.revive() == 1
    assert await hot.revive() == 0
    [again] = await drain(hot)
    assert again.record == made
    assert raw.xlen(keys.DEAD) == 0


async def test_dead_letters_are_listed_oldest_first_by_key_and_problem(hot: RedisHotStore) -> None:
    names = [f"k{number:03}" for number in range(60)]
    for key in names:
        await store(hot, key=key)
    for taken in await hot.take("w", count=100, block_seconds=0):
        await hot.bury(taken.outbox_id, "cold refuses it")
    letters = await hot.dead_letters(55)
    assert [letter.key for letter in letters] == names[:55]
    assert {letter.problem for letter in letters} == {"cold refuses it"}
    assert [letter.key for letter in await hot.dead_letters(1000)] == names
    await hot.revive()
    assert await hot.dead_letters(10) == []


async def test_an_overtaken_record_is_not_buried(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1")
    await hot.replace(later(made), audit("update"), expected_version=1)
    first, second = await hot.take("w", count=10, block_seconds=0)
    await hot.bury(first.outbox_id, "refused")
    assert raw.xlen(keys.DEAD) == 0
    await hot.bury(second.outbox_id, "refused")
    assert raw.xlen(keys.DEAD) == 1
    await hot.replace(later(later(made)), audit("update"), expected_version=2)
    assert raw.xlen(keys.DEAD) == 0, "the newer version carries it"


async def test_a_lost_group_is_made_again(hot: RedisHotStore, raw: redis.Redis) -> None:
    await store(hot, key="k1")
    raw.xgroup_destroy(keys.OUTBOX, "writers")
    assert [each.key for each in await hot.take("w", count=10, block_seconds=0)] == ["k1"]
    raw.xgroup_destroy(keys.OUTBOX, "writers")
    assert await hot.take_over("w", idle_seconds=0, count=10) == []
    assert [each.key for each in await hot.take("w", count=10, block_seconds=0)] == ["k1"]


@pytest.mark.traces("REQ-010-048")
async def test_delegations_pass_through(hot: RedisHotStore) -> None:
    granted = Delegation(
        delegator="A:B", delegate="C", created_at=datetime.now(UTC), expires_at=datetime.now(UTC)
    )
    await hot.put_delegation(granted, audit("delegate"))
    with pytest.raises(VersionConflictError):
        await hot.put_delegation(granted, audit("delegate"))
    assert await hot.delegations() == [granted]
    revoked = Delegation(
        delegator="A:B", delegate="C", created_at=granted.created_at, revoked=True, version=2
    )
    await hot.put_delegation(revoked, audit("revoke"))
    assert await hot.delegations() == [revoked]
    taken = await drain(hot)
    assert [(each.kind, each.key, each.delegation) for each in taken] == [
        (OutboxKind.DELEGATION, "A:B\0C", granted),
        (OutboxKind.DELEGATION, "A:B\0C", revoked),
    ]
    assert await hot.outbox_length() == 0


async def test_delegations_are_restored_only_above_what_is_held(hot: RedisHotStore) -> None:
    now = datetime.now(UTC)
    held = Delegation(delegator="A", delegate="B", created_at=now, version=2, revoked=True)
    await hot.put_delegation(held, audit("revoke"))
    unknown = Delegation(delegator="B", delegate="C", created_at=now)
    older = Delegation(delegator="A", delegate="B", created_at=now)
    await hot.restore_delegations([older, unknown])
    await hot.restore_delegations([older, unknown])
    assert set(await hot.delegations()) == {held, unknown}
    assert await hot.outbox_length() == 1


async def test_consumers_that_are_gone_are_forgotten_with_nothing_lost(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="k0")
    done = await hot.take("stopped", count=1, block_seconds=0)
    await hot.confirm([confirmation(each) for each in done])
    await store(hot, key="k1")
    await hot.take("crashed", count=1, block_seconds=0)

    def consumers() -> set[str]:
        return {each["name"] for each in raw.xinfo_consumers(keys.OUTBOX, "writers")}

    await hot.forget_consumers(idle_seconds=60)
    assert consumers() == {"crashed", "stopped"}
    await hot.forget_consumers(idle_seconds=0)
    assert consumers() == {"crashed"}
    assert [each.key for each in await hot.take_over("w", idle_seconds=0, count=10)] == ["k1"]
    await store(hot, key="k2")
    assert [each.key for each in await hot.take("stopped", count=1, block_seconds=0)] == ["k2"]


async def test_without_the_stream_there_is_no_consumer_to_forget(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    raw.delete(keys.OUTBOX)
    await hot.forget_consumers(idle_seconds=0)
    assert not raw.exists(keys.OUTBOX)
