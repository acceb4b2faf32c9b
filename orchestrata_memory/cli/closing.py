"""Closing a session as a kernel does, and hearing what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrata_memory.interfaces import SystemEvent, Topic

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

_LISTENER = "CLI:CLOSING"


@dataclass(slots=True, kw_only=True)
class Closed:
    """What the engine's events said of a closed session.

    Attributes:
        migrated: Entries moved to the graph.
        failed: Entries that stay in Redis until the engine has tried again.
        reasons: Why, without content.
    """

    migrated: int = 0
    failed: int = 0
    reasons: tuple[str, ...] = ()


async def close_session(engine: MemoryEngine, session_id: str) -> Closed:
    """Close a session over the kernel's bus; returns when its migration has ended."""
    closed = Closed()

    async def hear(event: SystemEvent) -> None:
        if event.payload.get("session_id") == session_id:
            closed.migrated = int(event.payload.get("migrated", 0))
            closed.failed = int(event.payload.get("failed", 0))
            closed.reasons = tuple(event.payload.get("reasons", ()))

    bus = engine.kernel.event_bus
    topics = (Topic.MIGRATE_COMPLETED, Topic.MIGRATE_FAILED)
    for topic in topics:
        await bus.subscribe(topic, hear, subscriber_id=_LISTENER)
    try:
        await engine.close_session(session_id)
    finally:
        for topic in topics:
            await bus.unsubscribe(topic, subscriber_id=_LISTENER)
    return closed
