"""Which of the found memories the caller may read: the rules have the last word."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrata_memory.governance.base import Governance
from orchestrata_memory.models import MemoryRecord
from orchestrata_memory.retrieval.cold_source import ColdSource
from orchestrata_memory.retrieval.hot_index import HotIndex


class SearchRights:
    """Asks `can_read_memory` in batches, for stored summaries about every source too.

    Args:
        cold: Where sources that hot does not hold are looked up.
    """

    def __init__(self, governance: Governance, index: HotIndex, cold: ColdSource) -> None:
        self._governance = governance
        self._index = index
        self._cold = cold

    async def may_read(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[bool]:
        """For each record whether the Volk may read it.

        A stored summary needs every source readable and still at the version it was made from.
        With the graph down, a summary whose sources cannot be seen is denied.
        """
        if not records:
            return []
        allowed = await self._governance.can_read_many(volk_id, records)
        sources = {
            key for record, ok in zip(records, allowed, strict=True) if ok for key in record.sources
        }
        if not sources:
            return allowed
        readable = await self._readable_versions(volk_id, sorted(sources))
        return [
            ok
            and all(
                readable.get(key) == version
                for key, version in zip(record.sources, record.source_versions, strict=True)
            )
            for record, ok in zip(records, allowed, strict=True)
        ]

    async def _readable_versions(self, volk_id: str, keys: Sequence[str]) -> dict[str, int]:
        """Version of each of the memories that the Volk may read, summaries of summaries too."""
        records = {key: header for key in keys if (header := self._index.header(key)) is not None}
        absent = [key for key in keys if key not in records and not self._index.is_deleted(key)]
        records.update(await self._cold.get_if_up(absent))
        found = list(records.values())
        allowed = await self.may_read(volk_id, found)
        return {record.key: record.version for record, ok in zip(found, allowed, strict=True) if ok}
