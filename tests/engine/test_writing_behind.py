"""The two stages of the write-behind worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrata_memory.cold.base import ColdPut, ColdWrite
from orchestrata_memory.config.settings import WorkerSettings
from orchestrata_memory.container import build_engine
from orchestrata_memory.engine import writebehind
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.models import AuditRecord
from tests.engine.conftest import As, engine_settings, until
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers


class Busy:
    """How many of the watched calls ran at once."""

    def __init__(self) -> None:
        self._now = 0
        self.most = 0

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            yield
        finally:
            self._now -= 1

    def watch(self, call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def watched(argument: Any) -> Any:
            async with self._counted():
                await asyncio.sleep(0.05)
                return await call(argument)

        return watched


@pytest.mark.traces("REQ-010-008", "REQ-010-010")
@pytest.mark.parametrize(("processors", "at_once"), [(1, 1), (2, 1), (4, 2)])
async def test_few_processors_are_left_one_for_those_who_wait(
    clean_redis: RedisServer,
    clean_graph: GraphServer,
    tmp_path: Path,
    as_: As,
    monkeypatch: pytest.MonkeyPatch,
    *,
    processors: int,
    at_once: int,
) -> None:
    monkeypatch.setattr(writebehind, "_processors", lambda: processors)
    settings = engine_settings(clean_redis, clean_graph, tmp_path, worker={"batch_size": 5})
    async with build_engine(settings) as engine:
        busy = Busy()
        vectorizer = engine._wired.worker._vectorizer
        monkeypatch.setattr(vectorizer, "vectors", busy.watch(vectorizer.vectors))
        monkeypatch.setattr(engine.parts.cold, "apply", busy.watch(engine.parts.cold.apply))
        with as_():
            stored = [await engine.store(f"memory {number}") for number in range(40)]
        assert await engine.settle()
        keys = [entry.key for entry in stored]
        assert (await engine.parts.cold.get(keys)).keys() == set(keys)
        assert (await engine.parts.cold.vectors(keys)).keys() == set(keys)
    assert busy.most == at_once


async def test_a_record_that_could_not_be_buried_is_delivered_again(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot, cold, worker = engine.parts.hot, engine.parts.cold, engine._wired.worker
    bury, apply = hot.bury, cold.apply
    faults = iter([MemoryUnavailableError("Redis", "it is away")])
    refusing = True

    async def failing_once(*arguments: Any) -> None:
        if fault := next(faults, None):
            raise fault
        await bury(*arguments)

    async def refuse(writes: Sequence[ColdWrite]) -> Mapping[str, str]:
        if not refusing:
            return await apply(writes)
        return {
            write.record.key if isinstance(write, ColdPut) else write.key: "no" for write in writes
        }

    monkeypatch.setattr(hot, "bury", failing_once)
    monkeypatch.setattr(cold, "apply", refuse)
    monkeypatch.setattr(
        worker, "_settings", WorkerSettings(max_deliveries=1, takeover_idle_seconds=0.5)
    )
    with as_():
        entry = await engine.store("refused at first")

        async def tried() -> bool:
            return worker.last_error is not None

        await until(tried)
        refusing = False

        async def arrived() -> bool:
            return set(await cold.get([entry.key])) == {entry.key}

        await until(arrived)


@pytest.mark.traces("REQ-010-047")
async def test_audit_records_go_to_the_graph_in_batches_whatever_arrives_meanwhile(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every store or search under way would cost the graph a transaction of its own."""
    append = engine.parts.cold.append_audit
    sizes: list[int] = []

    with as_():
        entry = await engine.store("a note")
        assert await engine.settle()

        async def while_more_arrives(records: Sequence[AuditRecord]) -> None:
            sizes.append(len(records))
            await append(records)
            await engine.retrieve(entry.key)
            await engine.parts.audit.flush()

        await engine._wired.upkeep.stop()
        monkeypatch.setattr(engine.parts.cold, "append_audit", while_more_arrives)
        for _ in range(3):
            await engine.retrieve(entry.key)
        await engine.parts.audit.flush()
        async with asyncio.timeout(10):
            await engine._wired.upkeep.drain_audit()
        monkeypatch.undo()
        assert len(sizes) == 1
        assert sizes[0] >= 3
        await engine._wired.upkeep.drain_audit()
        assert not await engine.parts.hot.pending_audit(1)
