"""Engines with proxies before their servers, parts exchanged, and clocks that are moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers
from pydantic import SecretStr

from orchestrata_memory.container import MemoryContainer
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.interfaces import Kernel
from tests.engine.conftest import RecordingKernel, as_, engine_settings, kernel
from tests.faults.proxy import Proxy
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

__all__ = ["as_", "kernel"]

PATIENCE = {
    "redis": {"operation_timeout_seconds": 2.0},
    "graph": {"operation_timeout_seconds": 3.0},
}
"""Short limits, so that a fault is over soon."""


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - what is waited for is another process
            await asyncio.sleep(0.05)


@dataclass
class Lab:
    """Makes engines on the servers of the run."""

    redis: RedisServer
    graph: GraphServer
    folder: Path
    kernel: RecordingKernel
    _stack: AsyncExitStack
    _made: list[MemoryEngine] = field(default_factory=list)

    async def proxy_redis(self) -> Proxy:
        return await self._stack.enter_async_context(Proxy(self.redis.port))

    async def proxy_graph(self) -> Proxy:
        port = int(self.graph.uri.rsplit(":", 1)[1])
        return await self._stack.enter_async_context(Proxy(port))

    def container(
        self,
        *,
        redis: Proxy | dict[str, Any] | None = None,
        graph: Proxy | dict[str, Any] | None = None,
        kernel: Kernel | None = None,
        **changes: Any,
    ) -> MemoryContainer:
        """A container whose parts can still be exchanged.

        Args:
            redis: A proxy before it, or settings.
            graph: Likewise.
            kernel: Another than the lab's.
            changes: As for `engine_settings`.
        """
        groups = {name: dict(values) for name, values in PATIENCE.items()}
        changes |= {
            name: given
            for name, given in (("redis", redis), ("graph", graph))
            if isinstance(given, dict)
        }
        for name, change in changes.items():
            groups[name] = (
                {**groups.get(name, {}), **change} if isinstance(change, dict) else change
            )
        if isinstance(redis, Proxy):
            url = f"redis://:{self.redis.password}@127.0.0.1:{redis.port}/0"
            groups["redis"]["url"] = SecretStr(url)
        if isinstance(graph, Proxy):
            groups["graph"]["uri"] = f"bolt://127.0.0.1:{graph.port}"
        settings = engine_settings(self.redis, self.graph, self.folder, **groups)
        container = MemoryContainer(settings=settings)
        container.kernel.override(providers.Object(kernel or self.kernel))
        return container

    async def start(self, container: MemoryContainer | None = None, **changes: Any) -> MemoryEngine:
        """A running engine, stopped with the test."""
        made: MemoryEngine = (container or self.container(**changes)).engine()
        return await self._stack.enter_async_context(made)


@pytest.fixture
async def lab(
    clean_redis: RedisServer,
    clean_graph: GraphServer,
    tmp_path: Path,
    kernel: RecordingKernel,
) -> AsyncIterator[Lab]:
    async with _lab(clean_redis, clean_graph, tmp_path, kernel) as made:
        yield made


@asynccontextmanager
async def _lab(
    redis: RedisServer, graph: GraphServer, folder: Path, kernel: RecordingKernel
) -> AsyncIterator[Lab]:
    async with AsyncExitStack() as stack:
        yield Lab(redis, graph, folder, kernel, stack)


@pytest.fixture
async def engine(lab: Lab) -> MemoryEngine:
    """An engine without any fault."""
    return await lab.start()
