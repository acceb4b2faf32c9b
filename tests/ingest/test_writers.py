"""Writers keep the order of a stream, the bound on how many, and their patience."""

import asyncio

import pytest

from orchestrata_memory.errors import MemoryBackpressureError, MemoryValidationError
from orchestrata_memory.ingest.writers import chunks, write_streams


async def test_streams_keep_their_order_and_no_more_than_allowed_write_at_once():
    running, most, written = 0, 0, []

    async def write(item):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        written.append(item)
        running -= 1

    done = []
    streams = [[(stream, number) for number in range(5)] for stream in range(10)]
    await write_streams(streams, write, writers=3, done=done.append)

    assert most == 3
    assert sum(done) == len(written) == 50
    for stream in range(10):
        assert [number for name, number in written if name == stream] == list(range(5))


async def test_a_full_outbox_is_waited_for():
    refusals = iter([True, True, False, False])
    written = []

    async def write(item):
        if next(refusals):
            raise MemoryBackpressureError(10, retry_after=0.001)
        written.append(item)

    await write_streams([["a", "b"]], write)

    assert written == ["a", "b"]


async def test_another_error_ends_it_as_itself():
    async def write(item):
        raise MemoryValidationError("content", "is blank")

    with pytest.raises(MemoryValidationError):
        await write_streams([["a"], ["b"]], write)


def test_chunks_are_consecutive():
    assert list(chunks([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
