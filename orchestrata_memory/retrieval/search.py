"""The search pipeline: candidates of both tiers, one ranking, the rules in rank order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Final

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.concurrency import together
from orchestrata_memory.config.settings import SearchSettings
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.hot.base import HotState, HotStore
from orchestrata_memory.models import (
    MemoryContext,
    MemoryRecord,
    MemoryScope,
    ScoreExplanation,
)
from orchestrata_memory.retrieval.analysis import TextAnalyzer
from orchestrata_memory.retrieval.base import Pool, Ranked
from orchestrata_memory.retrieval.cold_source import ColdSource
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.hot_source import HotSource, changed_since
from orchestrata_memory.retrieval.pool import Gathered
from orchestrata_memory.retrieval.ranking import rank
from orchestrata_memory.retrieval.search_request import SearchRequest, SearchTools, TierChoice
from orchestrata_memory.retrieval.search_rights import SearchRights
from orchestrata_memory.retrieval.search_run import SearchRun
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients

LEAST_CANDIDATES: Final = 200
"""Candidates by each kind of evidence at first, from cold half as many, as each has to be sent.

Measured: with more of them ranking finds hardly anything more. A scope of that size is ranked
whole."""

CANDIDATES_A_RESULT: Final = 4
INLINE_CANDIDATES: Final = 1_000
"""So many are ranked on the event loop, in milliseconds; more on a thread."""

_WIDENING: Final = 4
_RULES_BATCH: Final = 32
_ATTEMPTS: Final = 3
_ROUNDING: Final = 1e-6
"""What float32 may lose of a cosine of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One result.

    Attributes:
        record: The present version, content included.
        score: The `relevance_score`, in [0, 1].
        tier: ``hot`` or ``cold``: where it was found.
        holds_term: It holds a term of the query.
    """

    record: MemoryRecord
    score: float
    explanation: ScoreExplanation
    tier: str
    holds_term: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """The results of a search.

    Attributes:
        hits: Best first.
        tiers: Tiers that were asked and answered.
        degraded: What did not answer, so that results may be missing; None when all did.
    """

    hits: tuple[SearchHit, ...]
    tiers: tuple[str, ...]
    degraded: str | None = None


class SearchPipeline:
    """Searches both tiers for one caller.

    Traces: REQ-010-015, REQ-010-016, REQ-010-017, REQ-010-018, REQ-010-019
    """

    def __init__(  # noqa: PLR0917 - the parts of the engine, in their usual order
        self,
        hot: HotStore,
        cold: ColdStore,
        index: HotIndex,
        embedder: Embedder,
        governance: Governance,
        analyzer: TextAnalyzer,
        settings: SearchSettings,
    ) -> None:
        source = ColdSource(cold, index)
        self._tools = SearchTools(
            hot=HotSource(hot, index),
            cold=source,
            index=index,
            embedder=embedder,
            governance=governance,
            rights=SearchRights(governance, index, source),
            analyzer=analyzer,
            settings=settings,
        )

    async def search(
        self,
        context: MemoryContext,
        query: str,
        *,
        scope: MemoryScope,
        limit: int,
        min_similarity: float,
        now: datetime,
        include_summaries: bool = True,
        tiers: TierChoice = "both",
        ingredients: Ingredients = EVERYTHING,
    ) -> SearchOutcome:
        """The memories the caller may read that match, best first.

        Args:
            context: The caller.
            query: Not blank.
            scope: Every filter holds for every result.
            limit: At least so many qualifying memories give so many results.
            min_similarity: As (1 + cosine) / 2; for entries that hold no term of the query.
            now: What relative times in the query are relative to.
            include_summaries: False leaves stored summaries out.
            tiers: Where to look; ``both`` asks cold only when hot does not hold all of the scope.
            ingredients: Evidence to use; for measuring.

        Raises:
            MemoryUnavailableError: No tier answers.
            MemoryGovernanceError: The rules cannot be asked.
        """
        request = SearchRequest(
            volk_id=context.volk_id,
            query=query,
            scope=scope,
            limit=limit,
            min_similarity=min_similarity,
            now=now,
            include_summaries=include_summaries,
            tiers=tiers,
            ingredients=ingredients,
        )
        run = SearchRun(self._tools, request)
        hits, stale = await self._once(run, request)
        for _ in range(_ATTEMPTS - 1):
            if not stale:
                break
            # a result changed while it was looked for: look again at the new state
            hits, stale = await self._once(run, request)
        return SearchOutcome(
            hits=tuple(hits),
            tiers=tuple(
                name for name, asked in (("hot", run.asks_hot), ("cold", run.asks_cold)) if asked
            ),
            degraded=", ".join(run.missing) or None,
        )

    async def _once(
        self, run: SearchRun, request: SearchRequest
    ) -> tuple[list[SearchHit], set[str]]:
        """Results, and the keys left out because their state changed meanwhile."""
        await run.prepare()
        count = max(LEAST_CANDIDATES, CANDIDATES_A_RESULT * request.limit)
        overtakings = 0
        while True:
            pool, gathered = await run.gather(count)
            if run.overtaken and overtakings < _ATTEMPTS:
                overtakings += 1
                await run.prepare(both=overtakings == _ATTEMPTS)
                continue
            ranked = await self._ranked(run, request, pool)
            best = (one for one in ranked if _similar_enough(one, request.min_similarity))
            results = await self._results(run, gathered, best, request.limit)
            if results is not None:
                return results
            count *= _WIDENING

    async def _ranked(self, run: SearchRun, request: SearchRequest, pool: Pool) -> Sequence[Ranked]:
        ranking = partial(
            rank,
            run.plan,
            run.encoding,
            pool,
            now=request.now,
            settings=self._tools.settings,
            ingredients=request.ingredients,
        )
        if len(pool.candidates) <= INLINE_CANDIDATES:
            return ranking()
        return await asyncio.to_thread(ranking)

    async def _results(
        self, run: SearchRun, gathered: Gathered, best: Iterator[Ranked], limit: int
    ) -> tuple[list[SearchHit], set[str]] | None:
        """As `_once`; None where more candidates are needed."""
        foremost = list(islice(best, limit))
        if len(foremost) < limit and not gathered.exhausted:
            return None
        # most often these are the results, so their states are read while the rules are asked
        chosen, states = await together(
            self._allowed(run, gathered, chain(foremost, best), limit),
            self._states(run, foremost),
        )
        if len(chosen) < limit and not gathered.exhausted:
            return None
        rest = [one for one in chosen if one.passage.key not in states]
        return await self._verified(run, gathered, chosen, states | await self._states(run, rest))

    async def _allowed(
        self, run: SearchRun, gathered: Gathered, best: Iterator[Ranked], limit: int
    ) -> list[Ranked]:
        """The first `limit` that the rules let the caller read."""
        chosen: list[Ranked] = []
        size = max(_RULES_BATCH, limit)
        while batch := list(islice(best, size)):
            answers = await run.may_read(gathered, [one.passage.key for one in batch])
            chosen.extend(one for one in batch if answers[one.passage.key])
            if len(chosen) >= limit:
                break
        return chosen[:limit]

    async def _verified(
        self,
        run: SearchRun,
        gathered: Gathered,
        chosen: Sequence[Ranked],
        states: Mapping[str, HotState],
    ) -> tuple[list[SearchHit], set[str]]:
        """Fetch the contents, and tell what is not any more what was ranked."""
        records: dict[str, MemoryRecord] = {}
        moved: list[str] = []
        for one in chosen:
            record, hot = gathered.records[one.passage.key], states.get(one.passage.key)
            if hot is not None and hot.record is not None:
                records[record.key] = hot.record
            elif one.passage.tier == "cold":
                # the graph's records are shared between searches, the caller's metadata is not
                records[record.key] = record.changed(metadata=deepcopy(record.metadata))
            else:
                moved.append(record.key)
        records.update(await self._tools.cold.get_if_up(moved))
        stale = {
            one.passage.key
            for one in chosen
            if changed_since(
                one.passage.version, states.get(one.passage.key), records.get(one.passage.key)
            )
        }
        run.outdated |= {one.passage.key for one in chosen if one.passage.tier == "cold"} & stale
        hits = [
            SearchHit(
                record=records[one.passage.key],
                score=one.score,
                explanation=one.explanation,
                tier=one.passage.tier,
                holds_term=one.holds_term,
            )
            for one in chosen
            if one.passage.key not in stale
        ]
        return hits, stale

    async def _states(self, run: SearchRun, ranked: Sequence[Ranked]) -> dict[str, HotState]:
        if not run.hot_up:
            return {}
        try:
            return await self._tools.hot.read([one.passage.key for one in ranked])
        except MemoryUnavailableError:
            run.lose_hot()
            return {}


def _similar_enough(one: Ranked, min_similarity: float) -> bool:
    if one.holds_term or min_similarity <= 0:
        return True
    return one.cosine is not None and (1 + one.cosine) / 2 >= min_similarity - _ROUNDING
