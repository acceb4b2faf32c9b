"""Bringing cold memories back to hot when they matter again."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.engine.vectorizing import Vectorizer
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.models import MemoryRecord


class Promoter:
    """Copies cold entries into an open session as read-only replicas.

    Traces: REQ-010-033
    """

    def __init__(self, hot: HotStore, cold: ColdStore, vectorizer: Vectorizer) -> None:
        self._hot = hot
        self._cold = cold
        self._vectorizer = vectorizer

    async def promote(self, session_id: str, records: Sequence[MemoryRecord]) -> int:
        """Copy records; hot refuses what is closed, deleted, newer or live there.

        Returns:
            The number of replicas made or renewed.
        """
        if not records or await self._hot.is_closed(session_id):
            return 0
        vectors = await self._cold.vectors([record.key for record in records])
        missing = [record for record in records if record.key not in vectors]
        if missing:
            vectors.update(await self._vectorizer.vectors(missing))
        made = 0
        for record in records:
            vector = vectors.get(record.key)
            if vector is not None and vector.version == record.version:
                made += await self._hot.promote(session_id, record, vector)
        return made
