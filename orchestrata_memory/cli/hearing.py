"""Hearing what the engine says on the kernel's bus while it works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from orchestrata_memory.interfaces import SystemEvent, Topic

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine


@asynccontextmanager
async def hearing(engine: MemoryEngine, *topics: Topic) -> AsyncIterator[list[SystemEvent]]:
    """Events of these topics, in a list that grows until the block ends."""
    heard: list[SystemEvent] = []
    listener = f"CLI:HEARING:{uuid4()}"  # others may hear the same meanwhile

    async def hear(event: SystemEvent) -> None:
        heard.append(event)

    bus = engine.kernel.event_bus
    for topic in topics:
        await bus.subscribe(topic, hear, subscriber_id=listener)
    try:
        yield heard
    finally:
        for topic in topics:
            await bus.unsubscribe(topic, subscriber_id=listener)
