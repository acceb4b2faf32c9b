"""One search under way: what it found out so far, and its steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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
from orchestrata_memory.models import MemoryScope
from orchestrata_memory.retrieval.base import Found, Passage, Pool, Slot
from orchestrata_memory.retrieval.cold_source import ColdFound, cold_passage
from orchestrata_memory.retrieval.pool import (
    Gathered,
    combined,
    foremost,
    in_scope,
    promising,
)
from orchestrata_memory.retrieval.query import QueryPlan, name_candidates, plan_query
from orchestrata_memory.retrieval.ranking import context_slots
from orchestrata_memory.retrieval.search_request import SearchRequest, SearchTools
from orchestrata_memory.retrieval.weights import CONTEXT_OFFSETS

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

    The pre-filter is None when a deployment's own rules may allow more; then what is surely
    readable by the rules as shipped stands in where there is no record to ask about.

    Attributes:
        asks_hot, asks_cold: Tiers whose candidates are wanted and which answer so far.
        missing: What was needed and did not answer: tiers, ``embedding``.
        outdated: Keys whose cold copy proved to be older than what hot holds.
    """

    def __init__(self, tools: SearchTools, request: SearchRequest) -> None:
        self._tools = tools
        self._request = request
        self._readable: Readable | None = None
        self._readable_surely = Readable(volk_id=request.volk_id)
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
        self._readable_surely = self._readable or Readable(volk_id=request.volk_id)
        # what is counted does not depend on who is named
        terms = tools.analyzer.query_terms(request.query)
        asked = terms, request.scope, self._readable_surely
        _, of_cold = await together(self._understand(), self._counted(*asked))
        of_hot = tools.index.statistics(*asked) if self.asks_hot else None
        self._statistics = combined(of_hot, of_cold)

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

    async def _understand(self) -> None:
        """Plan the query and encode it; who is named decides what is encoded."""
        request, tools = self._request, self._tools
        names = name_candidates(request.query, tools.analyzer)
        known: frozenset[str] = frozenset()
        if names and self.asks_hot:
            known |= tools.index.speakers(names, request.scope, self._readable_surely)
        if names:
            of_cold = await self._of_cold(
                tools.cold.speakers, names, request.scope, self._readable_surely
            )
            known |= of_cold or frozenset()
        self._plan = plan_query(
            request.query,
            tools.analyzer,
            now=request.now,
            known_speakers=known,
            ingredients=request.ingredients,
        )
        await self._encode(self._plan.embedding_text)

    async def _encode(self, text: str) -> None:
        if self._encoded_text == text:
            return
        try:
            self._encoding = await self._tools.embedder.embed_query(text)
            self._encoded_text = text
        except MemoryEmbeddingError:
            self._encoding = None
            self.missing[EMBEDDING] = None

    async def _counted(
        self, terms: Sequence[str], scope: MemoryScope, readable: Readable
    ) -> TermStatistics | None:
        """Cold's statistics; meanwhile what hot has no vector of yet is embedded."""
        _, of_cold = await together(
            self._embed_pending(),
            self._of_cold(self._tools.cold.statistics, terms, scope, readable),
        )
        return of_cold

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
        if not self._all_qualify or len(gathered.passages) >= self._statistics.documents:
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

    async def _drop_denied(self, found: Found) -> None:
        """Without a pre-filter, what the rules deny must not even count as context."""
        if self._readable is None:
            answers = await self.may_read(found, list(found.passages))
            found.drop([key for key, ok in answers.items() if not ok])

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
