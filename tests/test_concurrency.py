"""Steps side by side end together, whatever happens to one of them."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from orchestrata_memory.concurrency import in_slices, side_by_side, together

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


class Steps:
    """Steps that wait until they are let go, and remember how they ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.go = asyncio.Event()

    async def wait(self, name: str) -> str:
        try:
            await self.go.wait()
        finally:
            self.ended.append(name)
        return name

    async def fail(self, name: str) -> str:
        await asyncio.sleep(0)
        raise LookupError(name)


async def test_results_come_in_order() -> None:
    async def after(ticks: int) -> int:
        for _ in range(ticks):
            await asyncio.sleep(0)
        return ticks

    assert await side_by_side(after(ticks) for ticks in (3, 1, 2)) == [3, 1, 2]
    assert await side_by_side([]) == []
    assert await together(after(2), after(1)) == (2, 1)


async def test_one_failure_stops_the_rest_and_is_raised_as_itself() -> None:
    steps = Steps()
    with pytest.raises(LookupError, match="b"):
        await side_by_side([steps.wait("a"), steps.fail("b"), steps.wait("c")])
    assert sorted(steps.ended) == ["a", "c"]
    with pytest.raises(LookupError, match="first"):
        await together(steps.fail("first"), steps.fail("second"))


async def test_work_that_cannot_be_made_leaves_none_running() -> None:
    steps = Steps()

    def work():
        yield steps.wait("a")
        raise ValueError("no more")

    before = asyncio.all_tasks()
    with pytest.raises(ValueError, match="no more"):
        await side_by_side(work())
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("ticks", range(4))
async def test_cancelling_stops_all(ticks: int) -> None:
    steps = Steps()
    before = asyncio.all_tasks()
    task = asyncio.create_task(side_by_side(steps.wait(name) for name in "abc"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    assert asyncio.all_tasks() == before


async def test_others_have_the_loop_between_slices() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def busy(item: int) -> int:
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass
        return -item

    task = asyncio.create_task(other())
    assert await in_slices(range(10), busy) == [-item for item in range(10)]
    task.cancel()
    assert turns >= 9
