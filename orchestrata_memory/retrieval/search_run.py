"""One search under way: what it found out so far, and its steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from orchestrata_memory.cold.base import ColdDocument, FindOrder, Readable, TermStatistics
from orchestrata_memory.concurrency import in_slices, together
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.errors import (
    COLD_TIER,
    HOT_TIER,
    MemoryEmbeddingError,
    MemoryUnavailableError,
)
from orchestrata_memory.retrieval.base import Found, Passage, Pool, Slot
from orchestrata_memory.retrieval.cold_source import ColdFound, cold_passage
from orchestrata_memory.retrieval.pool import (
    Gathered,
    combined,
    counted,
    foremost,
    in_scope,
    promising,
    speakers_named,
)
from orchestrata_memory.retrieval.query import QueryPlan, name_candidates, plan_query
from orchestrata_memory.retrieval.ranking import context_slots
from orchestrata_memory.retrieval.search_request import SearchRequest, SearchTools
from orchestrata_memory.retrieval.weights import CONTEXT_OFFSETS, Ingredients

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONTEXT_DEPTH: Final = 50
"""Candidates whose neighbours are fetched from cold: those that late interaction looks at."""

EMBEDDING: Final = "embedding"
P = ParamSpec("P")
Result = TypeVar("Result")


class SearchRun:
    """The state of one search.

    Where the pre-filter says exactly what the caller may read, the stores count it. Where a
    deployment's own rules may allow more or forbid some, statistics and speakers come from the
    candidates that the rules let pass, so that what they deny moves no score.

    Attributes:
        asks_hot, asks_cold: Tiers whose candidates are wanted and which answer so far.
        missing: What was needed and did not answer: tiers, ``embedding``.
        outdated: Keys whose cold copy proved to be older than what hot holds.
    """

    def __init__(self, tools: SearchTools, request: SearchRequest) -> None:
        self._tools = tools
        self._request = request
        self._readable: Readable | None = None
        self._plan: QueryPlan | None = None
        self._encoding: Encoding | None = None
        self._encoded_text: str | None = None
        self._statistics = TermStatistics(documents=0, average_length=0.0)
        self._rights: dict[tuple[str, int], bool] = {}
        self._departures = 0
        self.hot_up = True
        self.asks_hot = request.tiers != "cold"
        self.asks_cold = request.tiers != "hot"
        self.missing: dict[str, None] = {}
        self.outdated: set[str] = set()

    @property
    def plan(self) -> QueryPlan:
        """The query, understood; after `prepare`."""
        if self._plan is None:
            raise RuntimeError("a search is ranked before it was prepared")
        return self._plan

    @property
    def encoding(self) -> Encoding | None:
        """The query's vectors; None when the model does not work."""
        return self._encoding

    @property
    def overtaken(self) -> bool:
        """Memories moved from hot to cold meanwhile: each tier may have been asked too early."""
        return (
            self._request.tiers == "both"
            and COLD_TIER not in self.missing
            and self._tools.index.departures != self._departures
        )

    # --- steps ---------------------------------------------------------------------------
    async def prepare(self, *, both: bool = False) -> None:
        """Synchronise, decide which tiers to ask, understand and encode the query.

        Args:
            both: Ask cold though hot holds all: it may not for long.

        Raises:
            MemoryUnavailableError: No tier that is asked answers.
        """
        request, tools = self._request, self._tools
        await self._synchronise(both=both)
        # after that: a delegation granted or revoked until now is known to the rules
        self._readable = await tools.governance.readable(request.volk_id)
        # what is counted does not depend on who is named
        terms = tools.analyzer.query_terms(request.query)
        _, self._statistics = await together(self._understand(), self._counted(terms))

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

    def lose_hot(self) -> None:
        """Redis went away in between: what is left is what this process knew."""
        self.hot_up = False
        self.missing[HOT_TIER] = None

    # --- preparing -----------------------------------------------------------------------
    def _lose_hot(self) -> None:
        self.lose_hot()
        self.asks_hot = False
        self._need_a_tier()

    async def _synchronise(self, *, both: bool) -> None:
        """Bring the hot index up to date, and leave cold out where hot holds all."""
        hot = self._tools.hot
        self.hot_up = True
        self.asks_cold = self._request.tiers != "hot" and COLD_TIER not in self.missing
        self._departures = self._tools.index.departures
        try:
            if both or not (self.asks_hot and self.asks_cold):
                self.hot_up = await hot.synchronised()
            elif await hot.holds_all(self._request.scope):
                self.asks_cold = False
        except MemoryUnavailableError:
            self.hot_up = False
        if not self.hot_up:
            self._lose_hot()

    @property
    def _exact(self) -> bool:
        return self._readable is not None and self._readable.exact

    async def _understand(self) -> None:
        """Plan the query and encode it; who is named decides what is encoded."""
        known = await self._speakers() if self._exact else frozenset[str]()
        self._plan = self._planned(known, self._request.ingredients)
        await self._encode(self._plan.embedding_text)

    async def _speakers(self) -> frozenset[str]:
        """Who is named in the query and speaks in the scope."""
        request, tools = self._request, self._tools
        names = name_candidates(request.query, tools.analyzer)
        if not names:
            return frozenset()
        asked = names, request.scope, self._readable
        of_hot = tools.index.speakers(*asked) if self.asks_hot else frozenset[str]()
        of_cold = await self._of_cold(tools.cold.speakers, *asked)
        return of_hot | (of_cold or frozenset())

    def _planned(self, speakers: Collection[str], ingredients: Ingredients) -> QueryPlan:
        request = self._request
        return plan_query(
            request.query,
            self._tools.analyzer,
            now=request.now,
            known_speakers=speakers,
            ingredients=ingredients,
        )

    async def _encode(self, text: str) -> None:
        if self._encoded_text == text:
            return
        try:
            self._encoding = await self._tools.embedder.embed_query(text)
            self._encoded_text = text
        except MemoryEmbeddingError:
            self._encoding = None
            self.missing[EMBEDDING] = None

    async def _counted(self, terms: Sequence[str]) -> TermStatistics:
        """Statistics of the scope; meanwhile what hot has no vector of yet is embedded."""
        if not self._exact:
            await self._embed_pending()
            return combined(None, None)
        asked = terms, self._request.scope, self._readable
        _, of_cold = await together(
            self._embed_pending(), self._of_cold(self._tools.cold.statistics, *asked)
        )
        of_hot = self._tools.index.statistics(*asked) if self.asks_hot else None
        return combined(of_hot, of_cold)

    async def _embed_pending(self) -> None:
        if not self.asks_hot:
            return
        request, tools = self._request, self._tools
        try:
            await tools.hot.embed_pending(tools.embedder, request.scope, self._readable)
        except MemoryEmbeddingError:
            self.missing[EMBEDDING] = None
        except MemoryUnavailableError:
            self.lose_hot()

    # --- gathering -----------------------------------------------------------------------
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

    # --- a tier that does not answer -----------------------------------------------------
    async def _of_cold(
        self, ask: Callable[P, Awaitable[Result]], *args: P.args, **kwargs: P.kwargs
    ) -> Result | None:
        """The graph's answer; None when it is not asked or does not answer."""
        if not self.asks_cold:
            return None
        try:
            return await ask(*args, **kwargs)
        except MemoryUnavailableError:
            self.asks_cold = False
            self.missing[COLD_TIER] = None
            return None

    def _need_a_tier(self) -> None:
        if not self.asks_hot and not self.asks_cold:
            names = " and ".join(name for name in self.missing if name != EMBEDDING)
            raise MemoryUnavailableError(names, "nothing can be searched now; try again later")
