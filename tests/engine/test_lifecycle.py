"""Lifecycle, health and the container."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
from dependency_injector import containers, providers

from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.container import MemoryContainer, build_engine, register_memory_engine
from orchestrata_memory.engine import lifecycle
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryGovernanceError, MemoryLifecycleError
from orchestrata_memory.interfaces import (
    ComponentType,
    HealthStatus,
    IComponent,
    IMemoryEngine,
    PartHealth,
)
from orchestrata_memory.kernel import InProcessKernel
from orchestrata_memory.models import MemoryClassification, SummarizationStrategy
from tests.engine.conftest import VOLKS, As, engine_settings, until
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer


@pytest.mark.traces("REQ-010-001")
def test_the_interface_is_abstract_with_the_fixed_signatures() -> None:
    complete = {
        name: lambda self: None
        for name in (*IMemoryEngine.__abstractmethods__, *IComponent.__abstractmethods__)
    }
    type("Complete", (IMemoryEngine,), dict(complete))()
    for missing in complete:
        body = {name: method for name, method in complete.items() if name != missing}
        with pytest.raises(TypeError, match=missing):
            type("Incomplete", (IMemoryEngine,), body)()

    def defaults(name: str) -> dict[str, object]:
        parameters = inspect.signature(getattr(IMemoryEngine, name)).parameters
        return {n: p.default for n, p in parameters.items() if p.default is not p.empty}

    assert defaults("store") == {
        "key": None,
        "tags": None,
        "metadata": None,
        "classification": MemoryClassification.PRIVATE,
    }
    assert defaults("retrieve") == {"include_metadata": True}
    assert defaults("search") == {"scope": None, "limit": 10, "min_similarity": 0.7}
    assert defaults("summarize") == {
        "max_tokens": 2048,
        "strategy": SummarizationStrategy.RELEVANCE,
    }


@pytest.mark.servers
@pytest.mark.traces("REQ-010-002")
async def test_a_kernel_container_resolves_and_runs_it(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, as_: As
) -> None:
    kernel = InProcessKernel()
    container = containers.DynamicContainer()
    own = register_memory_engine(
        container, engine_settings(clean_redis, clean_graph, tmp_path), kernel=kernel
    )

    class OneVolk:
        async def volks(self) -> dict[str, frozenset[str]]:
            return {"KERNEL:ONLY": frozenset()}

        async def revision(self) -> int:
            return 1

    own.directory.override(providers.Object(OneVolk()))
    engine = getattr(container, ComponentType.MEMORY_ENGINE.value)()
    assert isinstance(engine, IMemoryEngine)
    assert engine is getattr(container, ComponentType.MEMORY_ENGINE.value)()
    await engine.initialize()
    await engine.start()
    try:
        with as_("KERNEL:ONLY"):
            assert (await engine.store("known to the kernel's directory")).version == 1
    finally:
        await engine.stop()


@pytest.mark.servers
@pytest.mark.parametrize("answers", [True, False])
async def test_stopping_waits_for_the_graph_only_while_it_answers(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    waited: list[float] = []

    async def drain(seconds: float) -> bool:
        waited.append(seconds)
        return True

    async def away() -> PartHealth:
        return PartHealth(status=HealthStatus.UNHEALTHY)

    monkeypatch.setattr(engine._wired.worker, "drain", drain)
    if not answers:
        monkeypatch.setattr(engine.parts.cold, "health", away)
    await engine.stop()
    configured = engine.settings.worker.drain_timeout_seconds
    assert (waited == pytest.approx([configured], abs=1)) is answers
    assert waited[0] <= configured


@pytest.mark.servers
async def test_a_graph_that_hangs_is_not_asked_longer_than_it_is_waited_for(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def drain(seconds: float) -> bool:
        waited.append(seconds)
        return False

    async def hangs() -> PartHealth:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(lifecycle, "_AWAY_SECONDS", 0.2)
    with monkeypatch.context() as patched:
        patched.setattr(engine._wired.worker, "drain", drain)
        patched.setattr(engine.parts.cold, "health", hangs)
        async with asyncio.timeout(4):  # less than health is waited for elsewhere
            await engine._drain(60)
    assert len(waited) == 1
    assert waited[0] < 0.2


@pytest.mark.servers
@pytest.mark.traces("REQ-010-003")
async def test_order_is_enforced_and_calls_are_idempotent(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, as_: As
) -> None:
    engine = build_engine(engine_settings(clean_redis, clean_graph, tmp_path))
    assert (await engine.get_health()).status is HealthStatus.STOPPED
    with pytest.raises(MemoryLifecycleError, match="initialize"):
        await engine.start()
    await engine.initialize()
    await engine.initialize()
    with as_(), pytest.raises(MemoryLifecycleError, match="not started"):
        await engine.store("too early")
    await engine.start()
    await engine.start()
    with as_():
        entry = await engine.store("in time")
    health = await engine.get_health()
    assert health.status is HealthStatus.HEALTHY, health
    assert "lag_records" in health.parts["write_behind"].details
    await engine.stop()
    await engine.stop()
    assert (await engine.get_health()).status is HealthStatus.STOPPED
    with as_(), pytest.raises(MemoryLifecycleError, match="stopped"):
        await engine.store("too late")
    with pytest.raises(MemoryLifecycleError):
        await engine.initialize()
    async with build_engine(engine_settings(clean_redis, clean_graph, tmp_path)) as again:
        assert set(await again.parts.cold.get([entry.key])) == {entry.key}


async def test_parts_can_be_overridden(tmp_path: Path) -> None:
    container = MemoryContainer(settings=MemoryEngineSettings())
    marker = object()
    container.embedder.override(providers.Object(marker))
    assert container.embedder() is marker
    assert isinstance(container.engine(), MemoryEngine)


@pytest.mark.servers
@pytest.mark.traces("REQ-010-010")
async def test_the_engine_starts_without_the_graph_and_reaches_it_later(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, as_: As
) -> None:
    if not clean_graph.killable:
        pytest.skip("this graph server is not ours to kill")
    clean_graph.kill()
    settings = engine_settings(clean_redis, clean_graph, tmp_path)
    async with build_engine(settings) as engine:
        try:
            with as_():
                entry = await engine.store("written before the graph was there")
                assert await engine.retrieve(entry.key) == entry
            health = await engine.get_health()
            assert health.parts["cold"].status is not HealthStatus.HEALTHY
        finally:
            await asyncio.to_thread(clean_graph.start)
        await until(engine.settle, 100)  # it gives up on a graph that takes long to get going
        assert set(await engine.parts.cold.get([entry.key])) == {entry.key}


@pytest.mark.servers
@pytest.mark.traces("REQ-010-001")
async def test_a_failed_initialization_can_be_repeated(tmp_path: Path, as_: As) -> None:
    rules = tmp_path / "own.pl"
    rules.write_text("can_read_memory(", "utf-8")
    settings = MemoryEngineSettings.model_validate(
        {
            "embedded": {"data_dir": tmp_path / "data"},
            "embedding": {"backend": "hashing", "dimension": 384},
            "governance": {"volks": VOLKS, "rule_files": [rules]},
        }
    )
    container = MemoryContainer(settings=settings)
    engine: MemoryEngine = container.engine()
    try:
        with pytest.raises(MemoryGovernanceError):
            await engine.initialize()
        await container.servers().stop(wait=True)  # so that they come back at other ports
        rules.write_text("can_read_memory(_, nothing).", "utf-8")
        await engine.initialize()
        await engine.start()
        with as_():
            entry = await engine.store("the harbour opens at dawn")
            assert await engine.settle()
        assert await engine.parts.cold.get([entry.key])
    finally:
        await engine.stop()


@pytest.mark.servers
async def test_stopping_waits_for_no_favour_that_hangs(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path
) -> None:
    settings = engine_settings(
        clean_redis, clean_graph, tmp_path, worker={"drain_timeout_seconds": 0.5}
    )
    async with build_engine(settings) as engine:
        hangs = asyncio.Event()
        engine._wired.favours.spawn(hangs.wait())
        async with asyncio.timeout(30):
            assert not await engine.settle(0.2)
            await engine.stop()
