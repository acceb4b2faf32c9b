"""What a search finds out before it looks for anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, ParamSpec, TypeVar

from orchestrata_memory.cold.base import Readable, TermStatistics
from orchestrata_memory.concurrency import together
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.errors import (
    COLD_TIER,
    HOT_TIER,
    MemoryEmbeddingError,
    MemoryUnavailableError,
)
from orchestrata_memory.retrieval.pool import combined
from orchestrata_memory.retrieval.query import QueryPlan, name_candidates, plan_query
from orchestrata_memory.retrieval.search_request import SearchRequest, SearchTools
from orchestrata_memory.retrieval.weights import Ingredients

EMBEDDING: Final = "embedding"
P = ParamSpec("P")
Result = TypeVar("Result")


class SearchPreparation:
    """What a search knows before it looks: the tiers to ask, the query understood, the statistics.

    Where the pre-filter says exactly what the caller may read, the stores count it. Where a
    deployment's own rules may allow more or forbid some, statistics and speakers come from the
    candidates that the rules let pass, so that what they deny moves no score.

    Attributes:
        asks_hot, asks_cold: Tiers whose candidates are wanted and which answer so far.
        missing: What was needed and did not answer: tiers, ``embedding``.
    """

    def __init__(self, tools: SearchTools, request: SearchRequest) -> None:
        self._tools = tools
        self._request = request
        self._readable: Readable | None = None
        self._plan: QueryPlan | None = None
        self._encoding: Encoding | None = None
        self._encoded_text: str | None = None
        self._statistics = TermStatistics(documents=0, average_length=0.0)
        self._departures = 0
        self.hot_up = True
        self.asks_hot = request.tiers != "cold"
        self.asks_cold = request.tiers != "hot"
        self.missing: dict[str, None] = {}

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

    def lose_hot(self) -> None:
        """Redis went away in between: what is left is what this process knew."""
        self.hot_up = False
        self.missing[HOT_TIER] = None

    # --- steps ---------------------------------------------------------------------------
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
            self.lose_hot()
            self.asks_hot = False
            self._need_a_tier()

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
