"""Two steps side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


async def together(first: Awaitable[First], second: Awaitable[Second]) -> tuple[First, Second]:
    """Both results; when one fails the other is stopped, and the error is the plain one."""
    tasks = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    return tasks[0].result(), tasks[1].result()
