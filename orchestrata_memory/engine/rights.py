"""Who may read a record, stored summaries included.

A stored summary is readable only with the right to read every source, and only while every source
stands at the version it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrata_memory.engine.delegating import Delegations
from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.errors import MemoryNotFoundError, MemoryValidationError
from orchestrata_memory.governance.base import Decision
from orchestrata_memory.models import MemoryClassification, MemoryRecord
from orchestrata_memory.summaries.keys import narrowest

READ_RULE = "can_read_memory"


class ReadingRights:
    """Asks `can_read_memory` for records and for what they were made from."""

    def __init__(self, tiers: Tiers, delegations: Delegations) -> None:
        self._tiers = tiers
        self._delegations = delegations

    async def decide(self, volk_id: str, record: MemoryRecord) -> Decision | None:
        """The decision about a record; None when it is a summary that no longer stands."""
        decision = await self._delegations.can_read(volk_id, record)
        if not decision.allowed or not record.sources:
            return decision
        located = await self._tiers.locate_many_to_read(record.sources)
        for key, version in zip(record.sources, record.source_versions, strict=True):
            source = located.get(key)
            if source is None or source.record.version != version:
                return None
            of_source = await self.decide(volk_id, source.record)
            if of_source is None:
                return None
            if not of_source.allowed:
                return Decision(
                    allowed=False,
                    rule=READ_RULE,
                    reason="it is a summary of memories that are not all readable",
                )
        return decision

    async def needed(self, volk_id: str, record: MemoryRecord) -> Decision:
        """As `decide`, for an operation that answers with the record.

        Raises:
            MemoryNotFoundError: It is a summary that no longer stands.
        """
        decision = await self.decide(volk_id, record)
        if decision is None:
            raise MemoryNotFoundError(record.key)
        return decision

    async def check_width(self, record: MemoryRecord, wanted: MemoryClassification) -> None:
        """Refuse a stored summary a classification that opens what its sources keep closed.

        Raises:
            MemoryValidationError: It is wider than that of a source.
        """
        sources = (await self._tiers.locate_many_to_read(record.sources)).values()
        allowed = narrowest([wanted, *(source.record.classification for source in sources)])
        if allowed is not wanted:
            raise MemoryValidationError(
                "classification", f"of this summary can be {allowed} at most, as its sources are"
            )

    async def readable(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        """Those of the records that the Volk may read, in order."""
        allowed: list[MemoryRecord] = []
        for record in records:
            decision = await self.decide(volk_id, record)
            if decision is not None and decision.allowed:
                allowed.append(record)
        return allowed
