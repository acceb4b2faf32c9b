"""Owned background tasks: started together, stopped together, awaited always."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from orchestrata_memory.engine.backoff import pauses
from orchestrata_memory.errors import MemoryEngineError

log = logging.getLogger(__name__)


_FIRST_RETRY_SECONDS = 1.0


class Periodic:
    """Runs a step again and again until stopped; one that failed is logged and soon tried again.

    Args:
        name: Names the task and its log lines.
        step: What to do.
        interval: Seconds between the end of one step and the next. After a failure it is one
            second, and twice as long after each further one, up to the interval.
    """

    def __init__(self, name: str, step: Callable[[], Awaitable[None]], interval: float) -> None:
        self.name = name
        self._step = step
        self._interval = interval
        self._task: asyncio.Task[None] | None = None
        self.last_error: str | None = None

    def start(self) -> None:
        """Start the task; nothing happens when it runs."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"orchestrata-memory {self.name}")

    async def stop(self) -> None:
        """Cancel the task and wait for its end."""
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    async def _run(self) -> None:
        retries = pauses(_FIRST_RETRY_SECONDS, limit=self._interval)
        while True:
            try:
                await self._step()
                self.last_error = None
                pause = self._interval
                retries = pauses(_FIRST_RETRY_SECONDS, limit=self._interval)
            except Exception as error:  # noqa: BLE001 - upkeep must outlive any single failure
                problem = describe(error)
                if problem != self.last_error:  # told once, not at every attempt
                    log.warning("%s: %s", self.name, problem)
                self.last_error = problem
                pause = next(retries)
            await asyncio.sleep(pause)


class TaskPool:
    """At most `limit` small tasks at once, none forgotten; what exceeds it is refused."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Start a task; False, and nothing started, when the pool is full."""
        if len(self._tasks) >= self._limit:
            work.close()
            return False
        task = asyncio.create_task(self._guard(work), name=f"orchestrata-memory {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def join(self) -> None:
        """Wait until every task started so far has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Cancel what runs and wait for its end."""
        for task in list(self._tasks):
            await cancel_and_wait(task)

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a background favour never fails its caller
            log.warning("%s: %s", self._name, describe(error))


async def cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancel `task` and wait until it has ended.

    Asked again each second: a cancellation that meets a time-out at the same moment can get lost
    in a library.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=1.0)


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Do `work` to its end even when the caller is cancelled meanwhile, which is told after."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


def describe(error: Exception) -> str:
    """The message of our own errors; of others, which may carry content, only kind and place."""
    if isinstance(error, MemoryEngineError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
