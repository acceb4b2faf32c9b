"""retrieve, related, lineage and the audit trail."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.engine.doorway import Doorway
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.engine.rights import READ_RULE, ReadingRights
from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.engine.trail import last_owner
from orchestrata_memory.errors import (
    MemoryNotFoundError,
    MemoryValidationError,
)
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.interfaces import Topic
from orchestrata_memory.models import AuditRecord, MemoryEntry, MemoryRecord
from orchestrata_memory.models.validation import check_identifier, check_limit

AUDIT_RULE = "can_read_audit"
MAX_DEPTH = 5
_LINEAGE_LEVELS = 10
_LEAST_TRAIL = 100
_WHOLE_TRAIL = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedMemory:
    """A memory reached by traversal.

    Attributes:
        distance: Number of steps from the start, from 1.
        via: What the shortest path ran over, such as ``("session", "task")``.
    """

    entry: MemoryEntry
    distance: int
    via: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLineage:
    """Where a memory came from: for a summary its sources, and theirs, as far as readable."""

    entry: MemoryEntry
    sources: tuple[MemoryLineage, ...] = ()


class Reading:
    """Operations that read by key."""

    def __init__(
        self,
        *,
        doorway: Doorway,
        governance: Governance,
        rights: ReadingRights,
        tiers: Tiers,
        hot: HotStore,
        cold: ColdStore,
        notices: Notices,
    ) -> None:
        self._doorway = doorway
        self._governance = governance
        self._rights = rights
        self._tiers = tiers
        self._hot = hot
        self._cold = cold
        self._notices = notices

    async def retrieve(self, key: str, *, include_metadata: bool) -> MemoryEntry | None:
        """See `IMemoryEngine.retrieve`."""
        call = self._doorway.enter("retrieve", check_identifier(key, "key"))
        located = await self._tiers.locate_with_vector(key)
        decision = (
            None if located is None else await self._rights.decide(call.volk_id, located.record)
        )
        if located is None or decision is None:
            await self._doorway.note(call, READ_RULE, "not found")
            return None
        await self._doorway.require(call, decision)
        await self._doorway.note(call, READ_RULE, f"tier={located.tier}")
        await self._notices.emit(
            Topic.RETRIEVE_COMPLETED,
            {"key": key, "volk_id": call.volk_id, "tier": located.tier},
        )
        record = located.record
        if not include_metadata:
            record = record.changed(tags=(), metadata={})
        vector = located.vector
        embedding = None if vector is None else tuple(vector.vector.tolist())
        return record.to_entry(embedding=embedding)

    async def related(self, key: str, *, depth: int, limit: int) -> list[RelatedMemory]:
        """Memories reached from an entry over sessions, tasks, projects and summaries.

        Traces: REQ-010-031
        """
        call = self._doorway.enter("related", check_identifier(key, "key"))
        check_limit(limit)
        if type(depth) is not int or not 1 <= depth <= MAX_DEPTH:
            raise MemoryValidationError("depth", f"must be a whole number from 1 to {MAX_DEPTH}")
        start = await self._readable_or_none(call.volk_id, key)
        await self._doorway.note(call, READ_RULE)
        if start is None:
            return []
        return await self._reached(call.volk_id, key, depth, limit)

    async def _reached(self, volk_id: str, key: str, depth: int, limit: int) -> list[RelatedMemory]:
        readable = await self._governance.readable(volk_id)
        found = await self._cold.related(key, depth=depth, limit=limit, readable=readable)
        newest = await self._tiers.locate_many_to_read([item.record.key for item in found])
        results: list[RelatedMemory] = []
        for item in found:
            located = newest.get(item.record.key)
            if located is None:
                continue
            decision = await self._rights.decide(volk_id, located.record)
            if decision is not None and decision.allowed:
                results.append(
                    RelatedMemory(
                        entry=located.record.to_entry(), distance=item.distance, via=item.via
                    )
                )
        return results

    async def lineage(self, key: str) -> MemoryLineage:
        """The sources of a memory, and theirs; what the caller may not read is left out.

        Raises:
            MemoryNotFoundError: No such key.
            MemoryAccessDeniedError: The caller may not read it.

        Traces: REQ-010-035
        """
        call = self._doorway.enter("lineage", check_identifier(key, "key"))
        located = await self._tiers.locate_to_read(key)
        decision = (
            None if located is None else await self._rights.decide(call.volk_id, located.record)
        )
        if located is None or decision is None:
            await self._doorway.note(call, READ_RULE, "not found")
            raise MemoryNotFoundError(key)
        await self._doorway.require(call, decision)
        await self._doorway.note(call, READ_RULE)
        return await self._lineage_of(call.volk_id, located.record, _LINEAGE_LEVELS)

    async def _lineage_of(self, volk_id: str, record: MemoryRecord, levels: int) -> MemoryLineage:
        sources: list[MemoryLineage] = []
        if record.sources and levels > 0:
            located = await self._tiers.locate_many_to_read(record.sources)
            found = [located[key].record for key in record.sources if key in located]
            sources = [
                await self._lineage_of(volk_id, source, levels - 1)
                for source in await self._rights.readable(volk_id, found)
            ]
        return MemoryLineage(entry=record.to_entry(), sources=tuple(sources))

    async def audit_trail(self, key: str, *, limit: int) -> list[AuditRecord]:
        """Who did what to a key, oldest first; for its owner and ``system_admin``.

        Traces: REQ-010-047
        """
        call = self._doorway.enter("audit", check_identifier(key, "key"))
        check_limit(limit)
        records = {record.audit_id: record for record in await self._hot.audit_of(key)}
        for record in await self._cold.audit_of(key, limit=max(limit, _LEAST_TRAIL)):
            records[record.audit_id] = record
        trail = sorted(records.values(), key=lambda record: (record.at, record.audit_id))
        owner = await self._owner_of(key, trail)
        await self._doorway.require(
            call, await self._governance.can_audit(call.volk_id, owner, key)
        )
        await self._doorway.note(call, AUDIT_RULE)
        return trail[-limit:]

    async def _owner_of(self, key: str, trail: list[AuditRecord]) -> str | None:
        """Who owns the key, or owned it before it was deleted."""
        state = (await self._hot.read([key]))[key]
        if state.owner is not None:
            return state.owner
        located = await self._tiers.locate(key)
        if located is not None:
            return located.record.volk_id
        # whoever asks for a key that is gone is on record too, however often
        return last_owner(trail) or last_owner(await self._cold.audit_of(key, limit=_WHOLE_TRAIL))

    async def _readable_or_none(self, volk_id: str, key: str) -> MemoryRecord | None:
        located = await self._tiers.locate_to_read(key)
        if located is None:
            return None
        decision = await self._rights.decide(volk_id, located.record)
        return located.record if decision is not None and decision.allowed else None
