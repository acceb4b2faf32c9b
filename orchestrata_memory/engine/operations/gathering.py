"""Collecting what a summary may draw on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.models import MemoryContext, MemoryRecord, MemoryScope
from orchestrata_memory.models.validation import MAX_LIMIT
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.summaries.sources import SourceMemory


class Gatherer:
    """Finds readable memories and their vectors."""

    def __init__(self, find: FindPipeline, tiers: Tiers) -> None:
        self._find = find
        self._tiers = tiers

    async def of_context(
        self, caller: MemoryContext, context_id: str, *, include_summaries: bool
    ) -> list[MemoryRecord]:
        """What the caller may read of a session or a task, newest first; each once.

        Raises:
            MemoryUnavailableError: Redis does not answer, or the graph does not and the hot tier
                knows nothing of that session.
        """
        found: dict[str, MemoryRecord] = {}
        for scope in (MemoryScope(session_id=context_id), MemoryScope(task_id=context_id)):
            try:
                records = await self._find.find(
                    caller, scope=scope, limit=MAX_LIMIT, include_summaries=include_summaries
                )
            except MemoryUnavailableError:
                # hot holds the whole session: what a task of that name holds besides can wait
                if not found:
                    raise
                continue
            found |= {record.key: record for record in records if record.key not in found}
        return sorted(found.values(), key=lambda record: (record.created_at, record.key))[::-1]

    async def with_vectors(
        self, records: Sequence[MemoryRecord], relevance: Mapping[str, float] | None = None
    ) -> list[SourceMemory]:
        """Records as sources; `relevance` by key where a search has scored them."""
        scores = relevance or {}
        vectors = await self._tiers.vectors([record.key for record in records]) if records else {}
        return [
            SourceMemory(
                record=record,
                vector=stored.vector
                if (stored := vectors.get(record.key)) and stored.version == record.version
                else None,
                relevance=scores.get(record.key),
            )
            for record in records
        ]


def unique(records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """Each key once, in order of first sight."""
    return list({record.key: record for record in records}.values())
