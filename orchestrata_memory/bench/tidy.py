"""Leaves servers that are not the bench's own as they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.ingest.writers import WRITERS, chunks, write_streams

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

_SETTLE_SECONDS = 300.0


async def forget(engine: MemoryEngine, keys: Sequence[str], reporter: Reporter) -> None:
    """Delete the caller's memories with these keys, through the public interface."""
    size = max(1, -(-len(keys) // WRITERS))
    with reporter.stage("deleting what was stored", len(keys)) as advance:
        await write_streams(chunks(keys, size), engine.delete, done=advance)
        await engine.settle(_SETTLE_SECONDS)
