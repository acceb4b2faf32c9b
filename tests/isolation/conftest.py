"""One engine for a module, with a clock that the tests move and a directory they fill."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from dependency_injector import providers

from orchestrata_memory.container import MemoryContainer
from orchestrata_memory.engine.bound import BoundMemory
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.models import MemoryContext
from tests.engine.conftest import RecordingKernel, engine_settings
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer


class Clock:
    """Runs with the real one, and further ahead when told."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Directory:
    """Whoever was registered."""

    def __init__(self) -> None:
        self._volks: dict[str, frozenset[str]] = {}
        self._revision = 0

    def register(self, alias: str, *roles: str) -> None:
        self._volks[alias] = frozenset(roles)
        self._revision += 1

    async def volks(self) -> Mapping[str, frozenset[str]]:
        return dict(self._volks)

    async def revision(self) -> int:
        return self._revision


@dataclass
class Platform:
    """A running engine and what it stands on."""

    engine: MemoryEngine
    kernel: RecordingKernel
    clock: Clock
    directory: Directory
    redis: RedisServer
    graph: GraphServer
    numbers: count[int] = field(default_factory=count)

    def as_(self, volk: str, session: str, **changes: str) -> BoundMemory:
        return BoundMemory(self.engine, MemoryContext(volk_id=volk, session_id=session, **changes))


@pytest.fixture(scope="module")
async def platform(
    redis_server: RedisServer, graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Platform]:
    redis_server.flush()
    graph_server.wipe()
    kernel, clock, directory = RecordingKernel(), Clock(), Directory()
    container = MemoryContainer(
        settings=engine_settings(redis_server, graph_server, tmp_path_factory.mktemp("isolation"))
    )
    container.kernel.override(providers.Object(kernel))
    container.clock.override(providers.Object(clock))
    container.directory.override(providers.Object(directory))
    async with container.engine() as engine:
        yield Platform(engine, kernel, clock, directory, redis_server, graph_server)
