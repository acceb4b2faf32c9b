"""The two stages of the write-behind worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrata_memory.container import build_engine
from orchestrata_memory.engine import writebehind
from tests.engine.conftest import As, engine_settings
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
