"""Background tasks that nobody waits for."""

from __future__ import annotations

import asyncio

from orchestrata_memory.engine.background import Periodic
from tests.engine.conftest import until

HOUR = 3600.0


async def test_a_failed_step_is_tried_again_long_before_its_next_turn() -> None:
    """Otherwise health would speak of a fault for an hour after it is over."""
    attempts = 0

    async def step() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise RuntimeError("the server was away for a moment")

    async def well() -> bool:
        return attempts > 0 and job.last_error is None

    job = Periodic("census", step, HOUR)
    job.start()
    await until(well)
    await job.stop()
    assert attempts == 2


async def test_what_goes_on_failing_is_tried_less_and_less_often(monkeypatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def fail() -> None:
        raise RuntimeError("it stays away")

    job = Periodic("census", fail, 10.0)
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "sleep", note)
        job.start()
        while len(pauses) < 6:
            await sleep(0)
    await job.stop()
    assert pauses[:6] == [1, 2, 4, 8, 10, 10]
