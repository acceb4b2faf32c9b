"""Many writers at once, in order within a stream, patient with a full outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from orchestrata_memory.errors import MemoryBackpressureError
from orchestrata_memory.ingest.progress import Advance, ignore

T = TypeVar("T")
R = TypeVar("R")

WRITERS = 16


async def patiently(step: Callable[[], Awaitable[R]]) -> R:
    """Do a step; as long as the outbox is full, wait as told and try again."""
    while True:
        try:
            return await step()
        except MemoryBackpressureError as error:
            await asyncio.sleep(error.retry_after)


async def write_streams(
    streams: Iterable[Sequence[T]],
    write: Callable[[T], Awaitable[object]],
    *,
    writers: int = WRITERS,
    done: Advance = ignore,
) -> None:
    """Write every item of every stream, up to `writers` streams at once.

    Args:
        streams: Items of one stream are written one after the other, in their order.
        write: Writes one item; repeated while the outbox is full.
        writers: How many streams go on at once.
        done: Called with 1 after every item.

    Raises:
        Exception: What `write` raised first; the other writers are cancelled.
    """
    waiting = iter(streams)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(writers):
                group.create_task(_writer(waiting, write, done))
    except ExceptionGroup as group_error:
        raise _first(group_error) from group_error


async def _writer(
    waiting: Iterator[Sequence[T]],
    write: Callable[[T], Awaitable[object]],
    done: Advance,
) -> None:
    for stream in waiting:
        for item in stream:
            await patiently(lambda item=item: write(item))  # type: ignore[misc]
            done(1)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in consecutive pieces of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))
