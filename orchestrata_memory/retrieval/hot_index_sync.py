"""Sharing one run of a job between callers without missing what came before each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class SharedRuns:
    """Runs a job for whoever asks, one run at a time.

    A caller's run always begins after its call: a run under way has perhaps already read what
    the caller expects it to see, so callers that come meanwhile share the next one.

    Args:
        job: What to do; its error goes to every caller of that run.
    """

    def __init__(self, job: Callable[[], Awaitable[None]]) -> None:
        self._job = job
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Wait for a whole run that begins from now on.

        A cancelled caller leaves the run to the others.
        """
        if self._next is None:
            self._next = asyncio.create_task(
                self._run(self._running), name="orchestrata-memory hot index"
            )
            self._next.add_done_callback(_retrieve)
        await asyncio.shield(self._next)

    async def close(self) -> None:
        """Cancel what runs, and wait for its end."""
        tasks = {task for task in (self._running, self._next) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, former: asyncio.Task[None] | None) -> None:
        try:
            if former is not None:
                await asyncio.wait({former})
        finally:
            self._running, self._next = self._next, None
        await self._job()


def _retrieve(task: asyncio.Task[None]) -> None:
    """Look at the error even where every caller went away."""
    if not task.cancelled():
        task.exception()
