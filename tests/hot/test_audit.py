"""The audit stream."""

from __future__ import annotations

import pytest
import redis

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.errors import MemoryBackpressureError
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.store import RedisHotStore
from tests.hot.making import audit, record

pytestmark = pytest.mark.servers


@pytest.mark.traces("REQ-010-047")
async def test_a_writes_audit_record_stands_with_it(hot: RedisHotStore) -> None:
    by = audit(key="k1")
    await hot.insert(record("k1", "CANARY"), by)
    await hot.insert(record("k1", "CANARY"), by)
    [(_, found)] = await hot.pending_audit(10)
    assert found == by
    assert await hot.audit_of("k1") == [by]


async def test_drained_records_go_and_the_rest_stays(hot: RedisHotStore) -> None:
    records = [audit("retrieve", key=f"k{n % 2}") for n in range(10)]
    await hot.append_audit(records)
    pending = await hot.pending_audit(4)
    assert [each for _, each in pending] == records[:4]
    await hot.drained_audit([stream_id for stream_id, _ in pending])
    await hot.drained_audit([stream_id for stream_id, _ in pending])
    assert [each for _, each in await hot.pending_audit(100)] == records[4:]
    assert await hot.audit_of("k1") == [records[5], records[7], records[9]]


async def test_a_long_trail_is_searched_to_its_end(hot: RedisHotStore) -> None:
    wanted = [audit(key="wanted") for _ in range(2)]
    await hot.append_audit([wanted[0], *(audit(key="x") for _ in range(5100)), wanted[1]])
    assert await hot.audit_of("wanted") == wanted


async def test_a_damaged_record_hides_no_other(hot: RedisHotStore, raw: redis.Redis) -> None:
    raw.xadd(keys.AUDIT, {"operation": "store", "key": "k1"})
    good = audit(key="k1")
    await hot.append_audit([good])
    damaged, found = [each for _, each in await hot.pending_audit(10)]
    assert found == good
    assert (damaged.operation, damaged.key) == ("store", "k1")
    assert damaged.detail.startswith("damaged:")
    assert await hot.audit_of("k1") == [damaged, good]


async def test_the_trail_has_a_bound(hot: RedisHotStore, clean_redis) -> None:
    small = RedisHotStore(RedisSettings(), url=clean_redis.url, outbox_limit=1)
    await small.open()
    try:
        await small.append_audit([audit() for _ in range(10)])
        with pytest.raises(MemoryBackpressureError):
            await small.append_audit([audit()])
        assert len(await small.pending_audit(100)) == 10
    finally:
        await small.close()
