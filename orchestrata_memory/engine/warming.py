"""Loading ahead what the first caller would otherwise wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchestrata_memory.engine.background import TaskPool
from orchestrata_memory.engine.parts import Parts
from orchestrata_memory.retrieval import date_phrases

_DELAY_SECONDS = 1.0
"""A command that ends sooner needs none of it."""


class WarmUp:
    """Warms a running engine in the background: vocabularies, date phrases, the hot index."""

    def __init__(self, parts: Parts, *, language: str) -> None:
        self._parts = parts
        self._loads: tuple[Callable[[], None], ...] = (
            parts.counters.warm_up,
            lambda: date_phrases.warm_up(language),
        )
        self._tasks = TaskPool("warm-up", 1)

    def start(self) -> None:
        """Begin in a moment."""
        self._tasks.spawn(self._run())

    async def stop(self) -> None:
        """Give up what is not loaded yet."""
        await self._tasks.stop()

    async def _run(self) -> None:
        await asyncio.sleep(_DELAY_SECONDS)
        await self._parts.index.sync()
        for load in self._loads:
            await asyncio.to_thread(load)
