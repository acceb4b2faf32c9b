"""Withdrawing stored summaries whose sources changed while their names could not be known.

A change withdraws the summaries that hot or cold know of in its own step. When cold was away then,
the worker makes up for it as it writes the change to cold, which by that knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.engine.trail import OWNER
from orchestrata_memory.hot.base import HotStore, OutboxKind, OutboxRecord, VersionConflictError
from orchestrata_memory.models import SYSTEM_VOLK, AuditRecord, MemoryRecord

OPERATION = "withdraw"


class Withdrawer:
    """Finds and withdraws summaries that rest on an older version of a source."""

    def __init__(self, hot: HotStore, cold: ColdStore) -> None:
        self._hot = hot
        self._cold = cold

    async def find(self, newest: Mapping[str, OutboxRecord]) -> list[MemoryRecord]:
        """Summaries in cold that these records make stale; asked before they are written."""
        changed = {
            key: item.version
            for key, item in newest.items()
            if item.kind is OutboxKind.DELETE or (item.kind is OutboxKind.PUT and item.version > 1)
        }
        if not changed:
            return []
        resting = await self._cold.summaries_of(list(changed))
        return [
            summary
            for key, summaries in resting.items()
            for summary in summaries
            if _version_of(summary, key) < changed[key]
        ]

    async def withdraw(self, summaries: list[MemoryRecord]) -> None:
        """Write their tombstones; what was withdrawn already is left alone.

        A full outbox does not hold them up: the worker that makes room in it waits for them.
        """
        for summary in summaries:
            with suppress(VersionConflictError):
                await self._hot.tombstone(summary, _record(summary), bounded=False)


def _version_of(summary: MemoryRecord, source: str) -> int:
    versions = dict(zip(summary.sources, summary.source_versions, strict=True))
    return versions.get(source, 0)


def _record(summary: MemoryRecord) -> AuditRecord:
    return AuditRecord(
        audit_id=uuid4().hex,
        operation=OPERATION,
        volk_id=SYSTEM_VOLK,
        session_id=summary.session_id,
        key=summary.key,
        rule="",
        outcome="allowed",
        detail=f"{OWNER}{summary.volk_id}",
        at=datetime.now(UTC),
    )
