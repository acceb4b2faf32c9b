"""Audit records survive: in Redis, else in the file, else the operation fails."""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.engine import audit as audit_module
from orchestrata_memory.engine.audit import AuditTrail
from orchestrata_memory.engine.audit_file import AuditFile
from orchestrata_memory.errors import MemoryAuditError
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.interfaces import HealthStatus
from orchestrata_memory.models import AuditRecord

pytestmark = pytest.mark.servers


def denial(number: int = 0, **changes) -> AuditRecord:
    fields = {
        "audit_id": uuid4().hex,
        "operation": "retrieve",
        "volk_id": "ENG:ALPHA",
        "session_id": "session-1",
        "key": f"key-{number}",
        "rule": "can_read_memory",
        "outcome": "denied",
        "detail": "",
        "at": datetime(2026, 3, 1, 12, 0, 0, number, tzinfo=UTC),
    }
    return AuditRecord(**{**fields, **changes})


@pytest.fixture
async def hot(clean_redis):
    settings = RedisSettings(url=SecretStr(clean_redis.url), operation_timeout_seconds=2.0)
    store = RedisHotStore(settings, outbox_limit=1000)
    await store.open()
    yield store
    await store.close()
    if not clean_redis.running:
        clean_redis.start()


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "state" / "audit.jsonl"


@asynccontextmanager
async def running(hot, path, **options):
    trail = AuditTrail(hot, file=path, **{"retry_seconds": 0.05, "group_seconds": 0.005, **options})
    trail.start()
    try:
        yield trail
    finally:
        await trail.stop()


async def in_redis(hot, expected: int) -> list[AuditRecord]:
    """The records in the stream, once `expected` distinct ones are there."""
    records: dict[str, AuditRecord] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(20):
            while len(records) < expected:
                with suppress(Exception):
                    pending = await hot.pending_audit(5000)
                    records = {record.audit_id: record for _, record in pending}
                await asyncio.sleep(0.02)
    return list(records.values())


async def replayed(trail: AuditTrail) -> None:
    """Wait until the file holds nothing."""
    async with asyncio.timeout(20):
        while True:
            if not (await trail.health()).details["file_pending"]:
                return
            await asyncio.sleep(0.02)


@pytest.mark.traces("REQ-010-047")
async def test_a_denial_is_in_redis_when_append_returns(hot, path):
    record = denial(1, key='a"b\nc键', detail="private → shared")
    async with running(hot, path) as trail:
        await trail.append(record)
        assert [found for _, found in await hot.pending_audit(10)] == [record]
    assert not path.exists()


@pytest.mark.traces("REQ-010-047")
async def test_grouped_records_all_arrive_in_order_and_in_few_round_trips(hot, path):
    records = [denial(number) for number in range(1200)]
    async with running(hot, path) as trail:
        before = hot.round_trips
        for record in records:
            await trail.append_later(record)
        await trail.flush()
        assert hot.round_trips - before < 50
        assert [found for _, found in await hot.pending_audit(5000)] == records


async def test_stop_writes_what_is_queued(hot, path):
    async with running(hot, path, group_seconds=30) as trail:
        for number in range(20):
            await trail.append_later(denial(number))
    assert len(await in_redis(hot, 20)) == 20
    await trail.stop()
    await trail.append_later(denial(99))  # after stop it writes at once
    assert len(await in_redis(hot, 21)) == 21


@pytest.mark.traces("REQ-010-047")
async def test_a_dead_redis_costs_no_record(hot, path, clean_redis):
    async with running(hot, path) as trail:
        await trail.append(denial(0))
        clean_redis.kill()
        for number in range(1, 30):
            await (trail.append if number % 2 else trail.append_later)(denial(number))
        await trail.flush()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(path.read_text("utf-8").splitlines()) == 29
        health = await trail.health()
        assert health.status is HealthStatus.DEGRADED
        assert health.details["file_pending"]
        clean_redis.start()
        found = await in_redis(hot, 30)
        assert {record.key for record in found} == {f"key-{number}" for number in range(30)}
        await trail.append(denial(30))
        await replayed(trail)
        assert (await trail.health()).status is HealthStatus.HEALTHY
    assert list(path.parent.glob("*")) in ([], [path])
    assert not AuditFile(path).pending()


async def test_a_file_of_an_earlier_process_is_replayed_at_start(hot, path):
    file = AuditFile(path)
    file.append([denial(1), denial(2)])
    (taken,) = file.take()  # that process died in the middle of its own replay
    file.append([denial(3)])
    assert taken.exists()
    async with running(hot, path):
        found = await in_redis(hot, 3)
    assert {record.key for record in found} == {"key-1", "key-2", "key-3"}
    assert not file.pending()


async def test_a_torn_line_is_skipped_said_and_tears_no_other(hot, path):
    file = AuditFile(path)
    file.append([denial(1)])
    with path.open("ab") as raw:
        raw.write(b'{"audit_id":"torn')
    file.append([denial(2)])
    with path.open("ab") as raw:
        raw.write(b"\xff\xfe\n[]\n{}\n" + b'{"at": 5}\n')
    async with running(hot, path) as trail:
        found = await in_redis(hot, 2)
        assert {record.key for record in found} == {"key-1", "key-2"}
        await replayed(trail)
        health = await trail.health()
    assert health.details["damaged_lines"] == 5
    assert "damaged" in health.message
    assert len(list(path.parent.glob("*.damaged-*"))) == 1


@pytest.mark.traces("REQ-010-047")
async def test_where_the_file_fails_too_the_operation_fails(hot, path, clean_redis):
    path.mkdir(parents=True)  # a folder where the file should be
    async with running(hot, path) as trail:
        clean_redis.kill()
        with pytest.raises(MemoryAuditError):
            await trail.append(denial(1))
        with pytest.raises(MemoryAuditError):
            await trail.append_later(denial(2))
        assert (await trail.health()).status is HealthStatus.UNHEALTHY
        path.rmdir()
        await trail.append_later(denial(3))  # to the file again
        await trail.append_later(denial(4))
        await trail.flush()
        clean_redis.start()
        found = await in_redis(hot, 2)
    assert {record.key for record in found} == {"key-3", "key-4"}


async def test_what_was_queued_before_both_failed_is_kept_and_written_later(
    hot, path, clean_redis, monkeypatch
):
    monkeypatch.setattr(audit_module, "QUEUE_LIMIT", 100)
    path.mkdir(parents=True)
    clean_redis.kill()
    async with running(hot, path) as trail:
        await trail.append_later(denial(1))
        with pytest.raises(MemoryAuditError):
            await trail.flush()
        clean_redis.start()
        assert [record.key for record in await in_redis(hot, 1)] == ["key-1"]
        await trail.flush()
        await trail.append_later(denial(2))
        assert len(await in_redis(hot, 2)) == 2


async def test_replay_while_others_append_loses_nothing(path):
    writer, reader = AuditFile(path), AuditFile(path)
    seen: list[str] = []

    def write() -> None:
        for number in range(150):
            writer.append([denial(number)])

    def replay() -> None:
        for taken in reader.take():
            for batch in reader.read(taken, 7):
                assert batch.damaged == 0
                seen.extend(record.key for record in batch.records)
            reader.done(taken, damaged=0)

    writing = asyncio.create_task(asyncio.to_thread(write))
    while not writing.done():
        await asyncio.to_thread(replay)
    await asyncio.to_thread(replay)
    assert sorted(seen) == sorted(f"key-{number}" for number in range(150))


async def test_a_stream_that_is_full_sends_records_to_the_file(clean_redis, path):
    settings = RedisSettings(url=SecretStr(clean_redis.url))
    hot = RedisHotStore(settings, outbox_limit=60)  # the audit stream holds 600
    await hot.open()
    try:
        async with running(hot, path) as trail:
            for number in range(1300):
                await trail.append_later(denial(number))
            await trail.flush()
            assert (await trail.health()).status is HealthStatus.DEGRADED
            got: set[str] = set()
            async with asyncio.timeout(20):
                while len(got) < 1300:  # the drain makes room, the replay fills it
                    pending = await hot.pending_audit(100)
                    got |= {record.key for _, record in pending}
                    await hot.drained_audit([stream_id for stream_id, _ in pending])
                    await asyncio.sleep(0.02)
    finally:
        await hot.close()


async def test_a_cancelled_append_leaves_the_trail_working(hot, path):
    async with running(hot, path) as trail:
        for _ in range(5):
            task = asyncio.create_task(trail.append(denial()))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        await trail.append(denial(7))
        assert "key-7" in {record.key for record in await in_redis(hot, 1)}


def test_the_folder_of_the_file_is_private(tmp_path):
    os.umask(os.umask(0o022))
    path = tmp_path / "new" / "audit.jsonl"
    AuditFile(path).append([denial()])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
