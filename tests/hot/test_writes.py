"""Insert, replace, tombstone, claims: every branch of their scripts."""

from __future__ import annotations

import asyncio
import json

import pytest
import redis

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.errors import MemoryBackpressureError
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.base import OutboxKind, OutboxRecord, VersionConflictError, Withdrawal
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import KeyState
from tests.hot.making import OWNER, SESSION, audit, confirmation, drain, later, record, store

pytestmark = pytest.mark.servers


@pytest.mark.traces("REQ-010-009", "REQ-010-025")
async def test_insert_is_there_at_once_under_session_and_volk(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    made = await store(hot, key="k1", summary="", task_id="t")
    state = (await hot.read(["k1"]))["k1"]
    assert state.state is KeyState.LIVE
    assert state.record == made
    assert made.position == 1
    fields = raw.hgetall(f"orchestrata:memory:{SESSION}:ENG%3AALPHA:k1")
    assert fields["content"] == made.content
    assert json.loads(fields["tags"]) == ["pump", "heat"]
    assert fields["summary"] == ""
    assert "portfolio_id" not in fields
    assert raw.zrange(f"orchestrata:memory:{SESSION}:ENG%3AALPHA:index", 0, -1) == ["k1"]
    assert raw.smembers(f"orchestrata:memory:{SESSION}:ENG%3AALPHA:tags:pump") == {"k1"}
    score = raw.zscore(f"orchestrata:memory:{SESSION}:ENG%3AALPHA:index", "k1")
    assert score == pytest.approx(made.created_at.timestamp(), abs=1e-6)


@pytest.mark.traces("REQ-010-024")
async def test_working_memory_has_the_sessions_ttl(hot: RedisHotStore, raw: redis.Redis) -> None:
    await store(hot, key="k1")
    for name in (
        keys.entry(SESSION, OWNER, "k1"),
        keys.index(SESSION, OWNER),
        keys.tagged(SESSION, OWNER, "pump"),
    ):
        assert 86_390 < raw.ttl(name) <= 86_400
    assert raw.ttl(keys.pointer("k1")) == -1, "no TTL while cold lacks it"


async def test_positions_count_within_a_stream(hot: RedisHotStore) -> None:
    first = [await store(hot) for _ in range(3)]
    elsewhere = await store(hot, session_id="session-10")
    assert [each.position for each in first] == [1, 2, 3]
    assert elsewhere.position == 1


async def test_insert_again_is_recognised(hot: RedisHotStore) -> None:
    made, by = record("k1"), audit()
    first = await hot.insert(made, by)
    again = await hot.insert(made, by)
    assert first == again
    assert await hot.outbox_length() == 1


async def test_insert_of_a_live_key_conflicts(hot: RedisHotStore) -> None:
    await store(hot, key="k1")
    with pytest.raises(VersionConflictError):
        await store(hot, key="k1")


async def test_insert_above_a_tombstone(hot: RedisHotStore) -> None:
    made = await store(hot, key="k1")
    await hot.tombstone(made, audit("delete"))
    for version in (1, 2, 4):
        with pytest.raises(VersionConflictError):
            await store(hot, key="k1", version=version)
    again = await store(hot, key="k1", version=3)
    state = (await hot.read(["k1"]))["k1"]
    assert state.record == again
    assert again.position == 2


async def test_replace_changes_hash_tags_and_version(hot: RedisHotStore, raw: redis.Redis) -> None:
    made = await store(hot, key="k1", task_id="t")
    new = later(made, content="It cooled.", tags=("cold",), task_id=None)
    await hot.replace(new, audit("update"), expected_version=1)
    state = (await hot.read(["k1"]))["k1"]
    assert state.record == new
    assert not raw.exists(keys.tagged(SESSION, OWNER, "pump"))
    assert raw.smembers(keys.tagged(SESSION, OWNER, "cold")) == {"k1"}


async def test_replace_of_an_older_version_conflicts(hot: RedisHotStore) -> None:
    made = await store(hot, key="k1")
    await hot.replace(later(made), audit("update"), expected_version=1)
    with pytest.raises(VersionConflictError):
        await hot.replace(later(made, content="late"), audit("update"), expected_version=1)


async def test_replace_of_a_deleted_key_conflicts(hot: RedisHotStore) -> None:
    made = await store(hot, key="k1")
    await hot.tombstone(made, audit("delete"))
    with pytest.raises(VersionConflictError):
        await hot.replace(later(made), audit("update"), expected_version=1)
    with pytest.raises(VersionConflictError):
        await hot.replace(later(made, version=3), audit("update"), expected_version=2)


async def test_replace_of_what_only_cold_holds_comes_home(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    old = record("k1", position=7, version=4)
    new = later(old, content="New.")
    await hot.replace(new, audit("update"), expected_version=4)
    state = (await hot.read(["k1"]))["k1"]
    assert state.state is KeyState.LIVE
    assert state.record == new
    assert raw.zrange(keys.index(SESSION, OWNER), 0, -1) == ["k1"]
    assert set(await hot.session_keys(SESSION)) == {"k1"}
    [taken] = await hot.take("w", count=10, block_seconds=0)
    assert isinstance(taken, OutboxRecord)
    assert taken.record == new


async def test_tombstone_leaves_nothing_but_the_tombstone(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    made = await store(hot, key="k1")
    await hot.tombstone(made, audit("delete"))
    state = (await hot.read(["k1"]))["k1"]
    assert (state.state, state.version, state.record) == (KeyState.DELETED, 2, None)
    assert state.owner == OWNER
    kinds = {keys.parse(name).kind for name in raw.keys("*")}
    assert kinds == {keys.NameKind.POINTER, keys.NameKind.OTHER, keys.NameKind.POSITIONS}
    assert raw.ttl(keys.pointer("k1")) == -1
    records = await hot.take("w", count=10, block_seconds=0)
    assert [(r.kind, r.version) for r in records if isinstance(r, OutboxRecord)] == [
        (OutboxKind.PUT, 1),
        (OutboxKind.DELETE, 2),
    ]


async def test_tombstone_of_another_version_conflicts(hot: RedisHotStore) -> None:
    made = await store(hot, key="k1")
    with pytest.raises(VersionConflictError):
        await hot.tombstone(later(made), audit("delete"))
    await hot.tombstone(made, audit("delete"))
    with pytest.raises(VersionConflictError):
        await hot.tombstone(made, audit("delete"))


async def test_two_writers_of_one_version_one_wins(
    hot: RedisHotStore, other: RedisHotStore
) -> None:
    made = await store(hot, key="k1")
    writers = [
        each.replace(later(made, content=f"{n}"), audit("update"), expected_version=1)
        for n, each in enumerate([hot, other] * 10)
    ]
    outcomes = await asyncio.gather(*writers, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 1
    assert sum(isinstance(outcome, VersionConflictError) for outcome in outcomes) == 19
    assert await hot.outbox_length() == 2


async def test_claims_exclude_each_other(hot: RedisHotStore, other: RedisHotStore) -> None:
    assert (await hot.claim("k1", "a")).state is KeyState.UNKNOWN
    with pytest.raises(VersionConflictError):
        await other.claim("k1", "b")
    with pytest.raises(VersionConflictError):
        await other.insert(record("k1"), audit(), claim_token="b")
    await other.release_claim("k1", "b")
    await hot.insert(record("k1"), audit(), claim_token="a")
    assert (await other.claim("k1", "b")).state is KeyState.LIVE


async def test_a_lost_claim_refuses_the_insert(hot: RedisHotStore) -> None:
    await hot.claim("k1", "a")
    await hot.release_claim("k1", "a")
    with pytest.raises(VersionConflictError):
        await hot.insert(record("k1"), audit(), claim_token="a")


async def test_a_full_outbox_refuses_stores_but_not_deletions(clean_redis) -> None:
    hot = RedisHotStore(RedisSettings(), url=clean_redis.url, outbox_limit=10)
    await hot.open()
    try:
        made = [await store(hot) for _ in range(10)]
        with pytest.raises(MemoryBackpressureError) as refused:
            await store(hot, key="extra")
        assert refused.value.limit == 10
        with pytest.raises(MemoryBackpressureError):
            await hot.replace(later(made[0]), audit("update"), expected_version=1)
        assert (await hot.read(["extra"]))["extra"].state is KeyState.UNKNOWN
        await hot.tombstone(made[0], audit("delete"))
        with pytest.raises(MemoryBackpressureError):
            await hot.tombstone(made[1], audit("delete"))
        await drain(hot)
        await store(hot, key="extra")
    finally:
        await hot.close()


async def test_summaries_fall_with_their_source(hot: RedisHotStore) -> None:
    source = await store(hot, key="source")
    first = await store(hot, key="sum1", sources=("source",), source_versions=(1,))
    await store(hot, key="sum2", sources=("sum1",), source_versions=(1,))
    bystander = await store(hot, key="bystander")
    await hot.replace(
        later(source),
        audit("update"),
        expected_version=1,
        withdrawals=[
            Withdrawal(key="cold-sum", version=3, volk_id=OWNER, session_id="s0", project_id=None)
        ],
    )
    states = await hot.read(["source", "sum1", "sum2", "cold-sum", "bystander"])
    assert states["source"].state is KeyState.LIVE
    assert states["bystander"].record == bystander
    assert {
        key: (states[key].state, states[key].version) for key in ("sum1", "sum2", "cold-sum")
    } == {
        "sum1": (KeyState.DELETED, first.version + 1),
        "sum2": (KeyState.DELETED, 2),
        "cold-sum": (KeyState.DELETED, 4),
    }
    deleted = {r.key for r in await drain(hot) if r.kind is OutboxKind.DELETE}
    assert deleted == {"sum1", "sum2", "cold-sum"}
    withdrawn = [r for r in await hot.audit_of("sum2") if r.operation == "withdraw"]
    assert len(withdrawn) == 1


async def test_a_summary_of_a_changed_source_is_refused(hot: RedisHotStore) -> None:
    source = await store(hot, key="source")
    await hot.replace(later(source), audit("update"), expected_version=1)
    with pytest.raises(VersionConflictError):
        await store(hot, key="sum", sources=("source",), source_versions=(1,))
    await store(hot, key="sum", sources=("source",), source_versions=(2,))


@pytest.mark.traces("REQ-010-026")
async def test_changes_are_published(hot: RedisHotStore, raw: redis.Redis) -> None:
    with raw.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe("orchestrata:memory:changes")
        subscription.get_message(timeout=1)
        made = await store(hot, key="k:1")
        made = later(made)
        await hot.replace(made, audit("update"), expected_version=1)
        made = later(made, shared_with=("OPS:BETA",))
        await hot.replace(made, audit("share"), expected_version=2)
        await hot.tombstone(made, audit("delete"))
        heard = []
        while message := subscription.get_message(timeout=0.2):
            heard.append(json.loads(message["data"]))
    assert heard == [
        {"key": "k:1", "kind": "store", "version": 1},
        {"key": "k:1", "kind": "update", "version": 2},
        {"key": "k:1", "kind": "share", "version": 3},
        {"key": "k:1", "kind": "delete", "version": 4},
    ]


async def test_each_operation_takes_one_round_trip(hot: RedisHotStore) -> None:
    made = record("k1")

    async def trips(operation) -> int:
        before = hot.round_trips
        await operation
        return hot.round_trips - before

    assert await trips(hot.insert(made, audit())) == 1
    assert await trips(hot.read([str(n) for n in range(600)])) == 1
    assert await trips(hot.replace(later(made), audit("update"), expected_version=1)) == 1
    assert await trips(hot.tombstone(later(made), audit("delete"))) == 1
    taken = await hot.take("w", count=10, block_seconds=0)
    assert await trips(hot.confirm([confirmation(r) for r in taken])) == 1
