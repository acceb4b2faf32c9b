"""From a pool of candidates to one score each (skeleton: keyword share and cosine)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from orchestrata_memory.config.settings import SearchSettings
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.models import ScoreExplanation
from orchestrata_memory.retrieval.base import Passage, Pool, Ranked, Slot
from orchestrata_memory.retrieval.query import QueryPlan

CONTEXT_OFFSETS: Final = (-4, -3, -2, -1, 1, 2, 3)
"""Positions around a candidate whose passages count as its context."""

RELEVANCE, MATCH, RECENCY = 0.55, 0.33, 0.12


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
) -> list[Ranked]:
    """Every candidate with its score, best first; ties by key."""
    idf = {
        term: math.log(
            1
            + (pool.statistics.documents - pool.statistics.frequencies.get(term, 0) + 0.5)
            / (pool.statistics.frequencies.get(term, 0) + 0.5)
        )
        for term in plan.ranking_terms
    }
    whole = sum(idf.values()) or 1.0
    ranked = []
    for passage in pool.candidates:
        held = tuple(term for term in plan.terms if term in passage.terms)
        share = sum(idf.get(term, 0.0) for term in held) / whole
        cosine = passage.cosine
        match = 0.5 * share + 0.5 * max(0.0, cosine or 0.0)
        age = max(0.0, (now - passage.created_at).total_seconds() / 86_400)
        recency = 0.5 ** (age / settings.recency_half_life_days)
        relevance = 0.5 if passage.relevance is None else passage.relevance
        score = RELEVANCE * relevance + MATCH * match + RECENCY * recency
        ranked.append(
            Ranked(
                passage=passage,
                score=score,
                holds_term=bool(held),
                explanation=ScoreExplanation(
                    score=score,
                    parts={
                        "relevance": (RELEVANCE, relevance),
                        "match": (MATCH, match),
                        "recency": (RECENCY, recency),
                    },
                    match={"keywords": (0.5, share), "cosine": (0.5, max(0.0, cosine or 0.0))},
                    terms=held,
                    similarity=None if cosine is None else (1 + cosine) / 2,
                    tier=passage.tier,
                ),
            )
        )
    return sorted(ranked, key=lambda one: (-one.score, one.passage.key))
