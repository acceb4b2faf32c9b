"""One search under way: its candidates and their context."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from orchestrata_memory.cold.base import ColdDocument, FindOrder
from orchestrata_memory.concurrency import in_slices, together
from orchestrata_memory.retrieval.base import Found, Passage, Pool, Slot
from orchestrata_memory.retrieval.cold_source import ColdFound, cold_passage
from orchestrata_memory.retrieval.pool import (
    Gathered,
    counted,
    foremost,
    in_scope,
    promising,
    speakers_named,
)
from orchestrata_memory.retrieval.query import name_candidates
from orchestrata_memory.retrieval.ranking import context_slots
from orchestrata_memory.retrieval.search_preparing import SearchPreparation
from orchestrata_memory.retrieval.search_request import SearchRequest, SearchTools
from orchestrata_memory.retrieval.weights import CONTEXT_OFFSETS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONTEXT_DEPTH: Final = 50
"""Candidates whose neighbours are fetched from cold: those that late interaction looks at."""


class SearchRun(SearchPreparation):
    """A search under way: candidates, what stands beside them, and what the caller may read.

    Attributes:
        outdated: Keys whose cold copy proved to be older than what hot holds.
    """

    def __init__(self, tools: SearchTools, request: SearchRequest) -> None:
        super().__init__(tools, request)
        self._rights: dict[tuple[str, int], bool] = {}
        self.outdated: set[str] = set()

    async def gather(self, count: int) -> tuple[Pool, Gathered]:
        """Candidates by `count`, with context and statistics.

        Raises:
            MemoryUnavailableError: No tier that is asked answers.
        """
        gathered, cold = await together(
            self._hot_candidates(count), self._cold_candidates(max(1, count // 2))
        )
        gathered.add(cold.found)
        gathered.exhausted = gathered.exhausted and cold.exhausted
        if gathered.exhausted:
            await self._rest(gathered, count)
        self._need_a_tier()
        await self._drop_denied(gathered)
        if not self._exact:
            self._learn_from(gathered)
        context, cosines = await self._context(gathered, count)
        pool = Pool(
            candidates=tuple(gathered.passages.values()),
            context=context,
            cosines=cosines,
            statistics=self._statistics,
        )
        return pool, gathered

    async def may_read(self, found: Found, keys: list[str]) -> dict[str, bool]:
        """Whether the rules let the caller read these candidates; asked once a version."""
        records = [found.records[key] for key in keys]
        fresh = [record for record in records if (record.key, record.version) not in self._rights]
        answers = await self._tools.rights.may_read(self._request.volk_id, fresh)
        for record, ok in zip(fresh, answers, strict=True):
            self._rights[record.key, record.version] = ok
        return {record.key: self._rights[record.key, record.version] for record in records}

    # --- candidates ----------------------------------------------------------------------
    @property
    def _vector(self) -> NDArray[np.float32] | None:
        return None if self._encoding is None else self._encoding.vector

    async def _hot_candidates(self, count: int) -> Gathered:
        if not self.asks_hot:
            return Gathered()
        request, index = self._request, self._tools.index
        hot = await index.candidates(
            self.plan.terms,
            self._vector,
            request.scope,
            self._readable,
            count,
            include_summaries=request.include_summaries,
        )
        matched = hot.keyword_exhausted and hot.vector_exhausted
        return Gathered(
            passages=hot.found.passages,
            records=hot.found.records,
            cosines=hot.found.cosines,
            exhausted=hot.complete if self._all_qualify else matched,
        )

    @property
    def _all_qualify(self) -> bool:
        return self._request.min_similarity <= 0

    async def _cold_candidates(self, count: int) -> ColdFound:
        request = self._request
        found = await self._of_cold(
            self._tools.cold.candidates,
            self.plan.terms,
            self._vector,
            request.scope,
            self._readable,
            count,
            exclude=self.outdated,
            include_summaries=request.include_summaries,
        )
        if found is None:
            return ColdFound()
        self.outdated |= found.outdated
        return found

    async def _rest(self, gathered: Gathered, count: int) -> None:
        """Where everything qualifies: what holds no term and has no vector either."""
        if not self._all_qualify or (self._exact and self._counts_all(gathered)):
            return
        request, cold = self._request, self._tools.cold
        records = await self._of_cold(
            cold.find,
            request.scope,
            tags=(),
            match_all=True,
            readable=self._readable,
            order=FindOrder.NEWEST,
            limit=count,
            offset=0,
            include_summaries=request.include_summaries,
        )
        new = [
            record
            for record in records or ()
            if record.key not in gathered.passages and cold.current(record)
        ]
        analyse = self._tools.analyzer.terms
        for record, terms in zip(
            new, await in_slices(new, lambda one: analyse(one.content)), strict=True
        ):
            document = ColdDocument.of(record, terms)
            gathered.passages[record.key] = cold_passage(document)
            gathered.records[record.key] = record
        gathered.exhausted = records is None or len(records) < count

    def _counts_all(self, gathered: Found) -> bool:
        """Whether all that the statistics count was found."""
        found = sum(not record.sources for record in gathered.records.values())
        return found >= self._statistics.documents

    async def _drop_denied(self, found: Found) -> None:
        """What the rules deny must not even count as context, or beside others in the ranking.

        An exact pre-filter leaves stored summaries to ask about: their sources decide.
        """
        exact = self._exact
        unsure = [key for key, record in found.records.items() if record.sources or not exact]
        answers = await self.may_read(found, unsure)
        found.drop([key for key, ok in answers.items() if not ok])

    def _learn_from(self, permitted: Found) -> None:
        """Count the candidates, and see who of them is named; the query stays encoded as asked."""
        self._statistics = counted(permitted, self.plan.terms)
        names = name_candidates(self._request.query, self._tools.analyzer)
        self._plan = self._planned(
            speakers_named(permitted, names), self._request.ingredients.without("first_person")
        )

    async def _context(
        self, gathered: Gathered, count: int
    ) -> tuple[dict[Slot, Passage], dict[str, float]]:
        """What stands beside the candidates, themselves included, and the cosines of all."""
        candidates = gathered.by_slot()
        beside = Found()
        if self.asks_hot:
            beside = self._beside_in_hot(gathered, candidates.keys())
        await self._drop_denied(beside)
        context = beside.by_slot() | candidates
        if self.asks_cold:
            of_cold = await self._beside_in_cold(gathered, context.keys(), count)
            context |= of_cold.by_slot()
            beside.add(of_cold)
        return context, beside.cosines | gathered.cosines

    def _beside_in_hot(self, gathered: Gathered, known: AbstractSet[Slot]) -> Found:
        index, vector, readable = self._tools.index, self._vector, self._readable
        passages = gathered.passages.values()
        of_hot = [one.key for one in passages if one.tier == "hot"]
        beside = index.around(of_hot, CONTEXT_OFFSETS, vector, readable)
        others = [one for one in passages if one.tier != "hot" and index.has_stream(one.slot)]
        if others:
            beside.add(index.context(context_slots(others) - known, vector, readable))
        return beside

    async def _beside_in_cold(
        self, gathered: Gathered, known: AbstractSet[Slot], count: int
    ) -> Found:
        """What stands beside the foremost candidates in cold.

        Others are too far down for their context to matter, and each neighbour is dear to fetch.
        Neighbours of good keyword matches become candidates themselves, as those of hot are
        already.
        """
        request, terms = self._request, self.plan.terms
        depth = max(CONTEXT_DEPTH, 2 * request.limit)
        slots = context_slots(foremost(gathered, self._statistics, terms, depth)) - known
        if not slots:
            return Found()
        neighbours = await self._of_cold(
            self._tools.cold.neighbours, slots, self._vector, self._readable
        )
        beside = Found() if neighbours is None else neighbours.found
        await self._drop_denied(beside)
        chosen = promising(
            gathered.passages.values(), beside.by_slot(), self._statistics, terms, count
        )
        gathered.add(
            beside, only={key for key in chosen if in_scope(beside.records[key], request.scope)}
        )
        return beside
