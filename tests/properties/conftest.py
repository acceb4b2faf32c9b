"""Two engines on one Redis and one graph, whose workers stand still."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from itertools import count

import pytest
from dependency_injector import providers

from orchestrata_memory.container import MemoryContainer
from orchestrata_memory.engine.engine import MemoryEngine
from tests.engine.conftest import engine_settings
from tests.properties.steps import ROLES
from tests.properties.world import Clock, World
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

WORKER = {
    "migration_timeout_seconds": 0.05,
    "drain_timeout_seconds": 0.1,
    "takeover_idle_seconds": 3600.0,
}


async def halt(engine: MemoryEngine) -> None:
    """Stop the background work; operations go on."""
    await engine._wired.worker.stop()
    await engine._wired.upkeep.stop()


@pytest.fixture(scope="module")
async def new_world(
    redis_server: RedisServer, graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callable[[], World]]:
    """Makes the world of the next history."""
    redis_server.flush()
    graph_server.wipe()
    clock = Clock()
    async with AsyncExitStack() as stack:
        engines: list[MemoryEngine] = []
        for _ in range(2):
            settings = engine_settings(
                redis_server,
                graph_server,
                tmp_path_factory.mktemp("engine"),
                governance={"volks": ROLES},
                worker=WORKER,
            )
            container = MemoryContainer(settings=settings)
            container.clock.override(providers.Object(clock))
            engine = await stack.enter_async_context(container.engine())
            await halt(engine)
            engines.append(engine)
        raw = stack.enter_context(redis_server.client())
        numbers = count(1)

        def make() -> World:
            return World(engines=engines, clock=clock, raw=raw, number=next(numbers))

        yield make
