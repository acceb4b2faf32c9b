"""Steps side by side, and long work in short slices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

First = TypeVar("First")
Second = TypeVar("Second")
Item = TypeVar("Item")
Result = TypeVar("Result")

SLICE_SECONDS: Final = 0.001


async def side_by_side(work: Iterable[Awaitable[Result]]) -> list[Result]:
    """Results in order; when one fails the rest is stopped, and the error is the plain one."""
    tasks: list[asyncio.Future[Result]] = []
    try:
        tasks += map(asyncio.ensure_future, work)
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        raise


async def together(first: Awaitable[First], second: Awaitable[Second]) -> tuple[First, Second]:
    """As `side_by_side`, of two kinds."""
    tasks = asyncio.ensure_future(first), asyncio.ensure_future(second)
    await side_by_side(tasks)
    return tasks[0].result(), tasks[1].result()


async def in_slices(items: Iterable[Item], make: Callable[[Item], Result]) -> list[Result]:
    """Make each result on the event loop, and let others have it whenever a millisecond has passed.

    For many short pieces of pure Python; an item is never divided. On a thread they would compete
    with the loop for the interpreter, and each step of the loop would wait up to the 5 ms after
    which a thread gives it up.
    """
    results: list[Result] = []
    until = time.perf_counter() + SLICE_SECONDS
    for item in items:
        results.append(make(item))
        if time.perf_counter() >= until:
            await asyncio.sleep(0)
            until = time.perf_counter() + SLICE_SECONDS
    return results
