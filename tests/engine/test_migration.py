"""Closing sessions, promotion, and what the tiers hold meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from orchestrata_memory.cold.base import ColdPut, ColdWrite
from orchestrata_memory.config.settings import WorkerSettings
from orchestrata_memory.container import build_engine
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.engine.operations import searching
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.interfaces import SystemEvent
from orchestrata_memory.models import SYSTEM_VOLK, KeyState, MemoryScope
from tests.engine.conftest import As, RecordingKernel, engine_settings, until
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers


async def hot_states(engine: MemoryEngine, keys: list[str]) -> dict[str, KeyState]:
    return {key: state.state for key, state in (await engine.parts.hot.read(keys)).items()}


@pytest.mark.traces("REQ-010-032")
async def test_the_bus_closes_a_session(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel
) -> None:
    with as_(task_id="t", project_id="p"):
        entries = [await engine.store(f"note {n}", tags=["x"]) for n in range(30)]
    with as_(session_id="s-2"):
        other = await engine.store("stays")
    await kernel.emit_event(
        SystemEvent(
            type="session.closed",
            source="KERNEL",
            payload={"session_id": "s-1", "outcome": "completed"},
        )
    )
    done = kernel.of_type("memory.migrate.completed")
    assert [event.payload for event in done] == [{"session_id": "s-1", "migrated": 30}]
    facts = kernel.of_type("session.fact")
    assert [(f.payload["session_id"], f.payload["value"]) for f in facts] == [("s-1", 30)]
    keys = [entry.key for entry in entries]
    left = await engine.parts.hot.read(keys)
    assert all(left[key].record is None for key in keys)
    assert set(await engine.parts.cold.get(keys)) == set(keys)
    assert await hot_states(engine, [other.key]) == {other.key: KeyState.LIVE}
    assert done[0].source == SYSTEM_VOLK


async def test_closing_twice_and_closing_nothing(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel
) -> None:
    with as_(SYSTEM_VOLK):
        assert await engine.migrate_to_cold("no such session") == 0
    with as_():
        await engine.store("once")
    await asyncio.gather(engine.close_session("s-1"), engine.close_session("s-1"))
    moved = [e.payload["migrated"] for e in kernel.of_type("memory.migrate.completed")]
    assert sum(moved) == 1
    facts = {event.payload["value"] for event in kernel.of_type("session.fact")}
    assert facts == {0, 1}
    assert kernel.of_type("session.fact")[-1].payload["value"] == 1


async def test_a_close_that_meets_a_missing_redis_is_made_up_for(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_():
        entry = await engine.store("left behind")
    hot = engine.parts.hot

    async def away(*_: object) -> bool:
        raise MemoryUnavailableError("Redis", "it is away")

    with monkeypatch.context() as patch:
        patch.setattr(hot, "lock_session", away)
        await engine.close_session("s-1")
    (failed,) = kernel.of_type("memory.migrate.failed")
    assert "Redis" in failed.payload["reasons"][0]

    async def moved() -> bool:
        return (await hot.read([entry.key]))[entry.key].record is None

    await until(moved)
    assert await hot.is_closed("s-1")


async def test_a_dead_letter_does_not_hold_up_its_session(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot, cold = engine.parts.hot, engine.parts.cold
    apply = cold.apply

    async def refusing(writes: Sequence[ColdWrite]) -> dict[str, str]:
        refused = {w.record.key for w in writes if isinstance(w, ColdPut) and "bad" in w.terms}
        good = [w for w in writes if not (isinstance(w, ColdPut) and w.record.key in refused)]
        failed = dict(await apply(good)) if good else {}
        return failed | dict.fromkeys(refused, "refused")

    monkeypatch.setattr(cold, "apply", refusing)
    monkeypatch.setattr(engine._wired.worker, "_settings", WorkerSettings(max_deliveries=1))
    with as_():
        bad = await engine.store("bad")
        good = [await engine.store(f"good {n}") for n in range(5)]
        await engine.close_session("s-1")
    (failed,) = kernel.of_type("memory.migrate.failed")
    assert failed.payload["keys"] == [bad.key]
    assert failed.payload["migrated"] == 5
    states = await hot.read([entry.key for entry in good])
    assert all(state.record is None for state in states.values())
    with as_():
        assert await engine.retrieve(bad.key) == bad


async def test_a_volk_moves_only_its_own(engine: MemoryEngine, as_: As) -> None:
    with as_("ENG:ALPHA"):
        own = await engine.store("alpha's")
    with as_("ENG:BETA"):
        other = await engine.store("beta's")
    with as_("ENG:ALPHA"):
        assert await engine.migrate_to_cold("s-1") == 1
    assert (await engine.parts.hot.read([own.key]))[own.key].record is None
    assert (await hot_states(engine, [other.key])) == {other.key: KeyState.LIVE}


async def test_a_store_in_a_closed_session_moves_on_by_itself(
    engine: MemoryEngine, as_: As
) -> None:
    await engine.close_session("s-1")
    with as_():
        late = await engine.store("came late")

        async def moved() -> bool:
            return (await engine.parts.hot.read([late.key]))[late.key].record is None

        await until(moved)
        assert await engine.retrieve(late.key) == late


@pytest.mark.traces("REQ-010-033")
async def test_a_match_brings_a_cold_memory_back_as_a_replica(
    engine: MemoryEngine, as_: As
) -> None:
    with as_():
        entry = await engine.store("the deploy key rotates on mondays")
    await engine.close_session("s-1")
    with as_(session_id="s-2"):
        found = await engine.search("deploy key", min_similarity=0)
        assert [hit.key for hit in found] == [entry.key]

        async def replicated() -> bool:
            return (await engine.parts.hot.read([entry.key]))[entry.key].replica

        await until(replicated)
        assert await engine.retrieve(entry.key) == entry
        origin = await engine.search(
            "deploy key", scope=MemoryScope(session_id="s-1"), min_similarity=0
        )
        assert [hit.key for hit in origin] == [entry.key]
        reader = MemoryScope(session_id="s-2")
        assert await engine.search("deploy key", scope=reader, min_similarity=0) == []
        changed = await engine.update(entry.key, content="it rotates on tuesdays")
        assert await engine.retrieve(entry.key) == changed
        await engine.delete(entry.key)
        assert await engine.retrieve(entry.key) is None
        assert await engine.search("deploy key", min_similarity=0) == []


@pytest.mark.traces("REQ-010-010", "REQ-010-032")
async def test_with_the_graph_down_stores_go_on_and_arrive_later(
    clean_redis: RedisServer,
    clean_graph: GraphServer,
    tmp_path: Path,
    kernel: RecordingKernel,
    as_: As,
) -> None:
    if not clean_graph.killable:
        pytest.skip("this graph server is not ours to kill")
    settings = engine_settings(
        clean_redis, clean_graph, tmp_path, graph={"operation_timeout_seconds": 3}
    )
    async with build_engine(settings, kernel=kernel) as engine:
        with as_():
            before = await engine.store("before the fall")
            await engine.settle()
            clean_graph.kill()
            try:
                entries = [await engine.store(f"while down {n}") for n in range(5)]
                assert await engine.retrieve(entries[0].key) == entries[0]
                found = await engine.search("while down 3", min_similarity=0)
                assert found[0].content == "while down 3"
                await engine.close_session("s-1")
                failed = kernel.of_type("memory.migrate.failed")
                assert failed
                assert failed[0].payload["failed"] == 6
                health = await engine.get_health()
                assert health.status != "healthy"
            finally:
                await asyncio.to_thread(clean_graph.start)
            keys = [entry.key for entry in [before, *entries]]

            async def arrived() -> bool:
                states = await engine.parts.hot.read(keys)
                return all(state.record is None for state in states.values())

            await until(arrived, 60)
            assert set(await engine.parts.cold.get(keys)) == set(keys)


async def test_a_volks_own_move_that_fails_never_closes_the_session(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_():
        await engine.store("stays in an open session")
        assert await engine.settle()

        async def away(keys: object) -> dict[str, object]:
            raise MemoryUnavailableError("the graph", "it is away")

        with monkeypatch.context() as patch:
            patch.setattr(engine.parts.cold, "versions", away)
            assert await engine.migrate_to_cold("s-1") == 0
    await asyncio.sleep(1.5)
    assert not await engine.parts.hot.is_closed("s-1")


async def test_a_session_that_another_engine_moves_is_looked_at_every_time(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that died in a migration holds up its session for its lock's time, no longer."""
    hot, migrator = engine.parts.hot, engine._wired.closing._migrator
    with as_():
        entry = await engine.store("half moved")
        assert await engine.settle()
    asked: list[str] = []

    async def held(session_id: str, *_: object) -> bool:
        asked.append(session_id)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(hot, "lock_session", held)
        await hot.mark_closed("s-1")
        for number in range(1, 4):
            await migrator.retry_closed()
            assert len(asked) >= number
    await migrator.retry_closed()
    assert (await hot.read([entry.key]))[entry.key].record is None


async def test_a_wide_search_brings_back_the_best_and_notes_each_match_once(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_MOST_PROMOTED", 2)
    noted: list[int] = []
    record_matches = engine.parts.hot.record_matches

    async def counting(scores: Mapping[str, Mapping[str, float]]) -> None:
        noted.append(sum(map(len, scores.values())))
        await record_matches(scores)

    monkeypatch.setattr(engine.parts.hot, "record_matches", counting)
    for number in range(6):
        with as_(session_id=f"old-{number}"):
            await engine.store(f"falcon number{number}")
    with as_():
        await engine.search("falcon", min_similarity=0)
        await engine._wired.favours.join()
        assert noted == [12]  # each for the reader's session and for its own
        for number in range(6):
            await engine.close_session(f"old-{number}")
        found = await engine.search("falcon", min_similarity=0)
        await engine._wired.favours.join()
        states = await engine.parts.hot.read([entry.key for entry in found])
    assert [states[entry.key].replica for entry in found] == [True, True, *[False] * 4]
