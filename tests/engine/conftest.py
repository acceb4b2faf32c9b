"""A running engine on real servers, with a few Volks, and a kernel that remembers its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.container import build_engine
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.interfaces import SystemEvent
from orchestrata_memory.kernel import InProcessKernel
from orchestrata_memory.models import MemoryContext, memory_context
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

VOLKS = {
    "ENG:ALPHA": ["team_lead"],
    "ENG:BETA": [],
    "ENG:GAMMA": [],
    "ENG:DELTA": [],
    "OPS:ADMIN": ["system_admin", "team_lead"],
}

As = Callable[..., AbstractContextManager[MemoryContext]]


def engine_settings(
    redis_server: RedisServer, graph_server: GraphServer, tmp_path: Path, **changes: Any
) -> MemoryEngineSettings:
    """Settings for the test servers; `changes` replace fields of groups, such as worker={…}."""
    groups: dict[str, Any] = {
        "redis": {"url": SecretStr(redis_server.url)},
        "graph": {
            "uri": graph_server.uri,
            "dialect": graph_server.dialect,
            "username": graph_server.username,
            "password": SecretStr(graph_server.password) if graph_server.password else None,
            "database": graph_server.database,
            "http_url": graph_server.http_url,
        },
        "embedding": {"backend": "hashing", "dimension": 384},
        "governance": {"volks": VOLKS},
        "audit": {"file": tmp_path / "audit.jsonl"},
        "worker": {"retry_max_seconds": 0.5, "takeover_idle_seconds": 2.0},
    }
    for name, change in changes.items():
        groups[name] = {**groups.get(name, {}), **change} if isinstance(change, dict) else change
    return MemoryEngineSettings.model_validate(groups)


class RecordingKernel(InProcessKernel):
    """An in-process kernel that keeps what was emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[SystemEvent] = []

    async def emit_event(self, event: SystemEvent) -> None:
        self.events.append(event)
        await super().emit_event(event)

    def of_type(self, event_type: str) -> list[SystemEvent]:
        return [event for event in self.events if event.type == event_type]


@pytest.fixture
def kernel() -> RecordingKernel:
    return RecordingKernel()


@pytest.fixture
async def engine(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, kernel: RecordingKernel
) -> AsyncIterator[MemoryEngine]:
    async with build_engine(
        engine_settings(clean_redis, clean_graph, tmp_path), kernel=kernel
    ) as running:
        yield running


@pytest.fixture
def as_() -> As:
    """`with as_("ENG:ALPHA"):` makes a Volk the caller; keywords set the rest of the context."""

    @contextmanager
    def caller(volk_id: str = "ENG:ALPHA", **changes: Any) -> Iterator[MemoryContext]:
        context = MemoryContext(volk_id=volk_id, **{"session_id": "s-1", **changes})
        with memory_context(context):
            yield context

    return caller


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 15.0) -> None:
    """Wait until what background work brings about is there."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - polls a server
            await asyncio.sleep(0.05)
