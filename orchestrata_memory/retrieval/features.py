"""Evidence that needs no index: speaker, time, age, relevance, vectors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from orchestrata_memory.retrieval.base import Passage
from orchestrata_memory.retrieval.dates import TimeSpan, closeness
from orchestrata_memory.retrieval.pool_view import Floats, PoolView
from orchestrata_memory.retrieval.weights import (
    NEUTRAL_RELEVANCE,
    TRUST_BEST,
    TRUST_FROM,
    TRUST_FULL,
)

_DAY = timedelta(days=1)


def relevances(passages: Sequence[Passage]) -> Floats:
    """Explicit relevance, within [0, 1]; neutral where none was given."""
    given = [
        NEUTRAL_RELEVANCE if passage.relevance is None else passage.relevance
        for passage in passages
    ]
    return np.clip(np.nan_to_num(np.array(given, dtype=np.float64)), 0.0, 1.0)


def recencies(passages: Sequence[Passage], *, now: datetime, half_life_days: float) -> Floats:
    """1 for now and for the future, halving with every half-life of age."""
    ages = np.array([(now - passage.created_at) / _DAY for passage in passages], dtype=np.float64)
    values: Floats = 0.5 ** (np.maximum(ages, 0.0) / half_life_days)
    return values


def spoken_by(passages: Sequence[Passage], speaker: str) -> Floats:
    """1 for what the named speaker said."""
    wanted = speaker.casefold()
    return np.array([float(passage.speaker.casefold() == wanted) for passage in passages])


def in_time(passages: Sequence[Passage], spans: Sequence[TimeSpan]) -> Floats:
    """Closeness of what happened to the times the query speaks of."""
    known: dict[datetime, float] = {}
    for passage in passages:
        if passage.occurred_at not in known:
            known[passage.occurred_at] = closeness(spans, passage.occurred_at)
    return np.array([known[passage.occurred_at] for passage in passages])


def cosine_values(view: PoolView) -> Floats:
    """Cosine of each candidate, 0 where it is negative or unknown."""
    return np.clip(np.nan_to_num(view.of_candidates(view.cosines)), 0.0, 1.0)


def trust_in_vectors(cosines: Floats) -> float:
    """How far the vectors alone can be trusted, by how close the best of them come."""
    best = np.sort(cosines)[-TRUST_BEST:]
    mean = float(best.sum()) / TRUST_BEST
    return min(max((mean - TRUST_FROM) / (TRUST_FULL - TRUST_FROM), 0.0), 1.0)
