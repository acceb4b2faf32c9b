"""Notices: in order, in the background where the bus is slow, and never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar

import pytest

from orchestrata_memory.engine import notices as module
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.interfaces import SystemEvent, Topic
from orchestrata_memory.kernel import EventFactEmitter, InProcessKernel

STORED, SEARCHED = Topic.STORE_COMPLETED, Topic.SEARCH_COMPLETED
TEST_SECONDS = 2.0
"""Less than a bus is waited for; more than any of these takes."""

caller: ContextVar[str] = ContextVar("caller", default="nobody")


class Desk:
    """Notices on a bus with a subscriber that writes down what it hears, slowly if asked to."""

    def __init__(self) -> None:
        self.kernel = InProcessKernel()
        self.notices = Notices(self.kernel, EventFactEmitter(self.kernel))
        self.heard: list[object] = []
        self.open = asyncio.Event()
        self.open.set()

    async def subscribe(self) -> None:
        for topic in (STORED, SEARCHED, Topic.SESSION_FACT):
            await self.kernel.event_bus.subscribe(topic, self._hear, subscriber_id="desk")

    async def _hear(self, event: SystemEvent) -> None:
        if event.type != SEARCHED:
            await self.open.wait()
        self.heard.append(event.payload.get("n", event.payload.get("value")))


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    await made.subscribe()
    return made


async def test_what_is_delivered_at_once_is_there_on_return(desk: Desk) -> None:
    await desk.notices.emit(STORED, {"n": 1})
    assert desk.heard == [1]
    await desk.notices.fact("s-1", "migrated", -7)
    assert desk.heard == [1, -7]


async def test_a_bus_that_hangs_holds_nobody_up_and_keeps_the_order(desk: Desk) -> None:
    desk.open.clear()
    async with asyncio.timeout(TEST_SECONDS):
        for n in range(100):
            await desk.notices.emit(STORED, {"n": n})
        await desk.notices.emit(SEARCHED, {"n": "of another topic"})
        await desk.notices.fact("s-1", "migrated", -7)
        assert desk.heard == ["of another topic"]
        desk.open.set()
        await desk.notices.stop()
    assert -7 in desk.heard
    assert [n for n in desk.heard[1:] if n != -7] == list(range(100))


async def test_a_handler_hears_in_the_context_of_who_caused_it(desk: Desk) -> None:
    async def hear(_: SystemEvent) -> None:
        desk.heard.append(caller.get())

    await desk.kernel.event_bus.subscribe(STORED, hear, subscriber_id="desk")
    for name in ("ENG:ALPHA", "ENG:BETA"):
        caller.set(name)
        await desk.notices.emit(STORED, {})
    assert desk.heard == ["ENG:ALPHA", "ENG:BETA"]


async def test_a_handler_may_cause_a_notice_of_the_same_kind_and_stop(desk: Desk) -> None:
    ended = asyncio.Event()

    async def hear(event: SystemEvent) -> None:
        if event.payload["n"] == 0:
            await desk.notices.emit(STORED, {"n": 1})
        else:
            await desk.notices.stop()
            ended.set()
        desk.heard.append(event.payload["n"])

    await desk.kernel.event_bus.subscribe(STORED, hear, subscriber_id="desk")
    async with asyncio.timeout(TEST_SECONDS):
        await desk.notices.emit(STORED, {"n": 0})
        await ended.wait()
        await desk.notices.stop()
    assert desk.heard == [0, 1]


async def test_what_is_too_much_is_dropped_and_told_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 3)
    desk.open.clear()
    with caplog.at_level(logging.WARNING, module.__name__):
        for n in range(10):
            await desk.notices.emit(STORED, {"n": n})
        assert len(caplog.messages) == 1
        desk.open.set()
        await desk.notices.stop()
        await desk.notices.emit(STORED, {"n": 10})
    assert desk.heard == [0, 1, 2, 10]
    assert "7 notices" in caplog.messages[-1]


async def test_stopping_gives_a_bus_that_hangs_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_STOP_SECONDS", 0.05)
    desk.open.clear()
    with caplog.at_level(logging.WARNING, module.__name__):
        for n in range(3):
            await desk.notices.emit(STORED, {"n": n})
        async with asyncio.timeout(TEST_SECONDS):
            await desk.notices.stop()
    assert "3 notices" in caplog.messages[-1]
    desk.open.set()
    await desk.notices.emit(STORED, {"n": 3})
    assert desk.heard == [3]


async def test_a_caller_that_gives_up_takes_no_notice_back(desk: Desk) -> None:
    desk.open.clear()
    emitting = asyncio.create_task(desk.notices.emit(STORED, {"n": 1}))
    await asyncio.sleep(0)
    emitting.cancel()
    await asyncio.wait({emitting})
    desk.open.set()
    await desk.notices.stop()
    assert desk.heard == [1]
