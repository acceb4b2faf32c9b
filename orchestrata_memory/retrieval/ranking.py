"""From a pool of candidates to one score each.

The match of an entry is the weighted mean of the evidence that applies to the query: keywords,
cosine, late interaction, and, if the query asks for them, the speaker, times and identifiers.
Explicit relevance, match and recency then make the score. See weights for the numbers and
specs/010-memory-engine/retrieval.md for how they came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import overload

import numpy as np

from orchestrata_memory.config.settings import SearchSettings
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.retrieval import weights
from orchestrata_memory.retrieval.base import Passage, Pool, Ranked, Slot
from orchestrata_memory.retrieval.bm25 import information
from orchestrata_memory.retrieval.coherence import coherence
from orchestrata_memory.retrieval.explanation import Evidence, Verdict
from orchestrata_memory.retrieval.features import (
    cosine_values,
    in_time,
    recencies,
    relevances,
    spoken_by,
    trust_in_vectors,
)
from orchestrata_memory.retrieval.late_interaction import late_interaction
from orchestrata_memory.retrieval.lexical import (
    TermTable,
    identifier_shares,
    keyword_shares,
)
from orchestrata_memory.retrieval.pool_view import Floats, PoolView, Rows
from orchestrata_memory.retrieval.query import QueryPlan
from orchestrata_memory.retrieval.weights import CONTEXT_OFFSETS, EVERYTHING, Ingredients

_OF_TEXT = ("keywords", "cosine")
_LATE = ("late_own", "late_window")


def context_slots(candidates: Iterable[Passage]) -> set[Slot]:
    """Slots of the candidates' neighbours, for `Pool.context`; some hold nothing."""
    return {
        (session, volk, position + offset)
        for session, volk, position in (candidate.slot for candidate in candidates)
        if position > 0
        for offset in CONTEXT_OFFSETS
        if position + offset > 0
    }


def rank(
    plan: QueryPlan,
    query: Encoding | None,
    pool: Pool,
    *,
    now: datetime,
    settings: SearchSettings,
    ingredients: Ingredients = EVERYTHING,
) -> Sequence[Ranked]:
    """Score every candidate.

    Scores depend on what is in the pool, never on its order, and on nothing outside it.

    Args:
        plan: The query, understood.
        query: The encoded `plan.embedding_text`; None while the model is away.
        pool: What to look at.
        now: What age is counted from; aware.
        settings: For the half-life of recency.
        ingredients: Evidence to use; for measuring.

    Returns:
        Every candidate, best first, equal ones by key.

    Traces: REQ-010-016, REQ-010-018, REQ-010-043
    """
    if not pool.candidates:
        return ()
    view = PoolView.of(pool)
    return _Ranking(_Judge(plan, query, pool, view, ingredients).judge(now, settings))


class _Ranking(Sequence[Ranked]):
    """The candidates, best first; each is made when it is looked at, as most never are."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        # rows are in the order of keys
        self._order: list[int] = np.argsort(-verdict.scores, kind="stable").tolist()
        self._terms_held: list[int] = np.count_nonzero(verdict.table.counts, axis=1).tolist()

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Ranked: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Ranked]: ...
    def __getitem__(self, place: int | slice) -> Ranked | Sequence[Ranked]:
        if isinstance(place, slice):
            return [self._at(row) for row in self._order[place]]
        return self._at(self._order[place])

    def _at(self, row: int) -> Ranked:
        return Ranked(
            passage=self._verdict.view.passages[row],
            score=float(self._verdict.scores[row]),
            cosine=self._verdict.cosine(row),
            holds_term=self._terms_held[row] > 0,
            explain=partial(self._verdict.explain, row),
        )


class _Judge:
    """The evidence of one query over one pool."""

    def __init__(
        self,
        plan: QueryPlan,
        query: Encoding | None,
        pool: Pool,
        view: PoolView,
        ingredients: Ingredients,
    ) -> None:
        self._plan = plan
        self._query = query
        self._statistics = pool.statistics
        self._view = view
        self._on = ingredients
        self._candidates = view.passages[: view.candidates]
        self._table = TermTable.of(view, plan.terms)
        self._information = {
            term: information(term, pool.statistics) for term in plan.ranking_terms
        }
        self._cosines = cosine_values(view)
        self._coherent = coherence(view) if self._on.coherence else 1.0
        self._context = self._coherent if self._on.context else 0.0
        self._trust = self._trust_in_vectors()

    def judge(self, now: datetime, settings: SearchSettings) -> Verdict:
        first = self._first_evidence()
        parts = {
            "relevance": Evidence(weights.RELEVANCE, relevances(self._candidates)),
            "match": Evidence(weights.MATCH, _mean(_standing_in(first), self._view.candidates)),
            "recency": Evidence(
                weights.RECENCY,
                recencies(
                    self._candidates, now=now, half_life_days=settings.recency_half_life_days
                ),
            ),
        }
        late = self._late_evidence(_best_rows(_total(parts), weights.LATE_DEPTH))
        missing = 1 - self._coherent if late else 1.0
        match = _normalised({**_standing_in(first, missing), **late})
        parts["match"] = Evidence(weights.MATCH, _mean(match, self._view.candidates))
        return Verdict(self._view, self._table, _total(parts), parts, match)

    def _trust_in_vectors(self) -> float:
        """In a stream that belongs together an entry is more than its own vector says."""
        if not self._on.trust or not self._on.cosine:
            return 0.0
        return trust_in_vectors(self._cosines) * (1 - self._context)

    def _of_text(self, weight: float) -> float:
        """Weight of evidence on the text, as far as its vector alone is not trusted."""
        return weight * (1 - self._trust * weights.TRUSTED_SHARE)

    def _first_evidence(self) -> dict[str, Evidence]:
        plan, on = self._plan, self._on
        found: dict[str, Evidence] = {}
        if on.keywords and plan.ranking_terms:
            shares = keyword_shares(
                self._view,
                self._table,
                self._information,
                average_length=self._statistics.average_length,
                coherence=self._context,
            )
            found["keywords"] = Evidence(self._of_text(weights.KEYWORDS), shares)
        if on.cosine and self._query is not None:
            others = weights.KEYWORDS + weights.LATE_OWN + weights.LATE_WINDOW
            trusted = self._trust * weights.TRUSTED_SHARE * others
            found["cosine"] = Evidence(weights.COSINE + trusted, self._cosines)
        if on.speaker and plan.speaker is not None:
            found["speaker"] = Evidence(weights.SPEAKER, spoken_by(self._candidates, plan.speaker))
        if on.times and plan.times:
            found["time"] = Evidence(weights.TIME, in_time(self._candidates, plan.times))
        if on.identifiers and plan.identifiers:
            shares = identifier_shares(self._view, self._table, plan.identifiers)
            found["identifiers"] = Evidence(weights.IDENTIFIERS, shares)
        return found

    def _late_evidence(self, rows: Rows) -> dict[str, Evidence]:
        """Word pieces count as far as the stream is coherent.

        They tell the parts of a conversation apart. Of an entry that stands for itself they say
        what its own vector says, only coarser (measured on CLINC150).
        """
        if not self._on.late_interaction or self._query is None or not self._coherent:
            return {}
        values = late_interaction(
            self._view, rows, self._query, self._weight_of_word, coherence=self._context
        )
        if values is None:
            return {}
        return {
            name: Evidence(
                self._coherent * self._of_text(weight),
                _spread(compared, rows, self._view.candidates),
            )
            for name, weight, compared in zip(
                _LATE, (weights.LATE_OWN, weights.LATE_WINDOW), values, strict=True
            )
        }

    def _weight_of_word(self, word: str) -> float:
        analyzer = self._plan.analyzer
        if analyzer.is_function_word(word):
            return 0.0
        known = [
            self._information.get(term, information(term, self._statistics))
            for term in analyzer.query_terms(word)
            if term not in self._plan.names
        ]
        return max(known, default=0.0)


def _standing_in(first: dict[str, Evidence], missing: float = 1.0) -> dict[str, Evidence]:
    """Keywords and cosine take the weight that late interaction leaves, so others weigh no more.

    Args:
        first: Evidence of the first stage.
        missing: Share of late interaction's weight that it does not take itself.
    """
    late = missing * (weights.LATE_OWN + weights.LATE_WINDOW)
    factor = 1 + late / (weights.KEYWORDS + weights.COSINE)
    return {
        name: Evidence(one.weight * factor, one.values) if name in _OF_TEXT else one
        for name, one in first.items()
    }


def _best_rows(scores: Floats, count: int) -> Rows:
    return np.sort(np.argsort(-scores, kind="stable")[:count])


def _spread(values: Floats, rows: Rows, candidates: int) -> Floats:
    """Values of the compared candidates, and assumed ones of the others.

    One without token vectors counts as the mean of those compared. One too far down to be
    compared counts as the lowest, so it never passes one that was.
    """
    present = values[~np.isnan(values)]
    spread = np.full(candidates, present.min() if len(present) else 0.0)
    spread[rows] = np.where(np.isnan(values), present.mean() if len(present) else 0.0, values)
    return spread


def _normalised(evidence: dict[str, Evidence]) -> dict[str, Evidence]:
    total = sum(one.weight for one in evidence.values())
    if total == 0.0:
        return {}
    return {name: Evidence(one.weight / total, one.values) for name, one in evidence.items()}


def _mean(evidence: dict[str, Evidence], candidates: int) -> Floats:
    return _total(_normalised(evidence)) if evidence else np.zeros(candidates)


def _total(evidence: dict[str, Evidence]) -> Floats:
    total: Floats = np.sum([one.weight * one.values for one in evidence.values()], axis=0)
    return np.clip(total, 0.0, 1.0)
