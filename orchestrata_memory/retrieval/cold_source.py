"""The cold tier as search and find use it: what hot knows better left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cachetools import TTLCache

from orchestrata_memory.cold.base import (
    ColdCandidates,
    ColdDocument,
    ColdHit,
    ColdQuery,
    ColdStore,
    FindOrder,
    Readable,
    TermStatistics,
)
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.models import MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.base import Found, Passage, Slot, slot_of
from orchestrata_memory.retrieval.headers import may_read
from orchestrata_memory.retrieval.hot_index import HotIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SPEAKERS_SECONDS: Final = 30.0
_SPEAKERS_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdFound:
    """Memories of the graph whose newest state the graph holds.

    Attributes:
        outdated: Keys left out because hot knows a newer state.
        exhausted: Every memory of the scope that holds a term or has a vector was seen.
    """

    found: Found = field(default_factory=Found)
    outdated: frozenset[str] = frozenset()
    exhausted: bool = True


class ColdSource:
    """What the pipelines ask of the graph. Every method may raise `MemoryUnavailableError`."""

    def __init__(self, cold: ColdStore, index: HotIndex) -> None:
        self._cold = cold
        self._index = index
        self._speakers: TTLCache[
            tuple[tuple[str, ...], MemoryScope, Readable | None], frozenset[str]
        ] = TTLCache(_SPEAKERS_KEPT, ttl=_SPEAKERS_SECONDS)

    async def candidates(
        self,
        terms: Sequence[str],
        vector: NDArray[np.float32] | None,
        scope: MemoryScope,
        readable: Readable | None,
        count: int,
        *,
        exclude: AbstractSet[str],
        include_summaries: bool,
    ) -> ColdFound:
        """Candidates that are current; `exclude` on top of what hot knows to be deleted."""
        found: ColdCandidates = await self._cold.candidates(
            ColdQuery(
                terms=tuple(terms),
                vector=vector,
                scope=scope,
                readable=readable,
                count=count,
                exclude=self._index.deleted_keys() | exclude,
            )
        )
        return self._current(
            found.hits,
            readable,
            include_summaries=include_summaries,
            exhausted=found.keyword_exhausted and found.vector_exhausted,
        )

    async def neighbours(
        self,
        slots: Iterable[Slot],
        vector: NDArray[np.float32] | None,
        readable: Readable | None,
    ) -> ColdFound:
        """Memories at these places that pass the pre-filter, stored summaries left out."""
        hits = await self._cold.neighbours(sorted(slots), vector)
        return self._current(hits, readable, include_summaries=False, exhausted=True)

    async def statistics(
        self, terms: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> TermStatistics:
        """Statistics of what the caller may read in the scope."""
        return await self._cold.statistics(terms, scope, readable)

    async def speakers(
        self, names: tuple[str, ...], scope: MemoryScope, readable: Readable | None
    ) -> frozenset[str]:
        """Which of the names speak in the scope; remembered for half a minute."""
        if not names:
            return frozenset()
        asked = (names, scope, readable)
        known = self._speakers.get(asked)
        if known is None:
            known = self._speakers[asked] = await self._cold.speakers(names, scope, readable)
        return known

    async def get(self, keys: Sequence[str]) -> dict[str, MemoryRecord]:
        """Current records of the keys."""
        records = await self._cold.get(keys) if keys else {}
        return {key: record for key, record in records.items() if self.current(record)}

    async def get_if_up(self, keys: Sequence[str]) -> dict[str, MemoryRecord]:
        """As `get`, and nothing while the graph is down."""
        try:
            return await self.get(keys)
        except MemoryUnavailableError:
            return {}

    async def find(
        self,
        scope: MemoryScope,
        *,
        tags: Sequence[str],
        match_all: bool,
        readable: Readable | None,
        order: FindOrder,
        limit: int,
        offset: int,
        include_summaries: bool,
    ) -> list[MemoryRecord]:
        """One page of a find as the graph shows it; check `current` for each."""
        return await self._cold.find(
            scope,
            tags=tags,
            match_all=match_all,
            readable=readable,
            order=order,
            limit=limit,
            offset=offset,
            include_summaries=include_summaries,
        )

    def current(self, record: MemoryRecord) -> bool:
        """Whether hot knows nothing newer than this record of the graph."""
        key = record.key
        return not self._index.is_deleted(key) and record.version >= self._index.known_version(key)

    def _current(
        self,
        hits: Iterable[ColdHit],
        readable: Readable | None,
        *,
        include_summaries: bool,
        exhausted: bool,
    ) -> ColdFound:
        """What hot knows nothing newer of.

        The pre-filter holds again: a memory may have been narrowed since the graph looked.
        """
        model = self._index.model_name
        found = Found()
        outdated: set[str] = set()
        for hit in hits:
            record = hit.document.record
            if not self.current(record):
                outdated.add(record.key)
            elif may_read(record, readable) and (include_summaries or not record.sources):
                found.passages[record.key] = cold_passage(hit.document, model)
                found.records[record.key] = record
                if hit.cosine is not None and hit.document.model == model:
                    found.cosines[record.key] = hit.cosine
        return ColdFound(found=found, outdated=frozenset(outdated), exhausted=exhausted)


def cold_passage(document: ColdDocument, model: str | None = None) -> Passage:
    """What ranking needs to know of a memory of the graph; token vectors of that model, if any."""
    record = document.record
    return Passage(
        key=record.key,
        version=record.version,
        slot=slot_of(record),
        terms=document.terms,
        speaker=document.speaker,
        created_at=record.created_at,
        occurred_at=document.occurred_at,
        relevance=document.relevance,
        tokens=document.tokens if document.model == model else None,
        tier="cold",
    )
