"""Closing a session as a kernel does, and hearing what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrata_memory.cli.hearing import hearing
from orchestrata_memory.interfaces import Topic

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine


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
    async with hearing(engine, Topic.MIGRATE_COMPLETED, Topic.MIGRATE_FAILED) as events:
        await engine.close_session(session_id)
    for event in events:
        if event.payload.get("session_id") == session_id:
            closed.migrated = int(event.payload.get("migrated", 0))
            closed.failed = int(event.payload.get("failed", 0))
            closed.reasons = tuple(event.payload.get("reasons", ()))
    return closed
