"""Passages, pools and plans for tests of the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from orchestrata_memory.cold.base import TermStatistics
from orchestrata_memory.config.settings import SearchSettings
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.retrieval.analysis import TextAnalyzer
from orchestrata_memory.retrieval.base import Passage, Pool, Ranked
from orchestrata_memory.retrieval.query import plan_query
from orchestrata_memory.retrieval.ranking import rank
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients

NOW = datetime(2026, 1, 14, 15, 30, tzinfo=UTC)  # a Wednesday
ANALYZER = TextAnalyzer()
SETTINGS = SearchSettings()


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Near(Passage):
    """A passage of a pool with the cosine that it has there."""

    cosine: float | None = None


def passage(key: str, text: str = "", *, position: int = 0, session: str = "s", **fields) -> Near:
    """A passage of one text; without a position it has no context."""
    values = {
        "version": 1,
        "slot": (session, "ENG:ALPHA", position),
        "terms": tuple(ANALYZER.terms(text)),
        "speaker": "ENG:ALPHA",
        "created_at": NOW,
        "occurred_at": fields.get("created_at", NOW),
    }
    return Near(key=key, **(values | fields))


def pool(
    candidates: Sequence[Near],
    context: Sequence[Near] = (),
    *,
    statistics: TermStatistics | None = None,
) -> Pool:
    """A pool whose statistics are those of the passages, unless others are given."""
    everything = [*candidates, *context]
    return Pool(
        candidates=tuple(candidates),
        context={one.slot: one for one in everything},
        cosines={one.key: one.cosine for one in everything if one.cosine is not None},
        statistics=statistics or statistics_of(everything),
    )


def statistics_of(passages: Sequence[Passage]) -> TermStatistics:
    terms = {term for one in passages for term in one.terms}
    return TermStatistics(
        documents=len(passages),
        average_length=sum(len(one.terms) for one in passages) / max(len(passages), 1),
        frequencies={term: sum(term in one.terms for one in passages) for term in terms},
    )


def ranked(
    query: str,
    of: Pool,
    *,
    encoding: Encoding | None = None,
    speakers: Sequence[str] = (),
    now: datetime = NOW,
    settings: SearchSettings = SETTINGS,
    ingredients: Ingredients = EVERYTHING,
) -> list[Ranked]:
    plan = plan_query(query, ANALYZER, now=now, known_speakers=speakers, ingredients=ingredients)
    return rank(plan, encoding, of, now=now, settings=settings, ingredients=ingredients)


def scores(found: Sequence[Ranked]) -> Mapping[str, float]:
    return {one.passage.key: one.score for one in found}


def keys(found: Sequence[Ranked]) -> list[str]:
    return [one.passage.key for one in found]


def encoding(dimension: int = 8) -> Encoding:
    """A query vector for tests that give cosines themselves."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[0] = 1.0
    return Encoding(vector=vector)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)
