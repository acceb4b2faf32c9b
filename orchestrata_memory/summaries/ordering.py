"""In which order a strategy draws on memories.

Relevance: what the metadata says above how well it fits the current context above how recent it
is, weighed as in a search. Importance: what the metadata says, then relevance. Recency: newest
first, by when it happened. Memories that say much the same as one drawn before (by their
vectors) wait behind others of like worth: maximal marginal relevance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.models import SummarizationStrategy
from orchestrata_memory.retrieval.weights import MATCH, RECENCY, RELEVANCE
from orchestrata_memory.summaries.sources import SourceMemory

Floats = NDArray[np.float64]

_DAY_SECONDS: Final = 86_400.0

UNSTATED_RELEVANCE: Final = 0.15
"""What a memory counts as whose metadata say nothing: so much that full stated relevance outweighs
the best fit and the newest date together, and stated irrelevance still counts below it."""

LIKE_FROM: Final = 0.6
"""Cosine from which two memories count as alike."""

LIKE_PENALTY: Final = 0.4
"""What saying the very same costs under the relevance strategy, of a worth in [0, 1]."""

IMPORTANCE_PENALTY: Final = 0.05
"""The same under the importance strategy: it only decides among nearly equal importance."""

DIVERSIFIED: Final = 1000
"""So many of the best are reordered against repetition; those behind keep their order."""


def ordered(
    sources: Sequence[SourceMemory],
    strategy: SummarizationStrategy,
    *,
    focus: NDArray[np.float32] | None,
    now: datetime,
    half_life_days: float,
) -> list[int]:
    """Indices of the sources, what to draw on first in front; equal ones by time, then by key.

    Args:
        sources: The memories.
        strategy: What counts.
        focus: Unit vector of the current context, or None without one.
        now: What age is counted from; aware.
        half_life_days: Age at which recency counts half.

    Traces: REQ-010-021
    """
    newest_first = sorted(
        range(len(sources)),
        key=lambda index: (-sources[index].record.occurred_at.timestamp(), _tie(sources[index])),
    )
    if strategy is SummarizationStrategy.RECENCY:
        return newest_first
    worth = relevance(sources, focus=focus, now=now, half_life_days=half_life_days)
    penalty = LIKE_PENALTY
    if strategy is SummarizationStrategy.IMPORTANCE:
        # Full relevance is worth less than the smallest step of importance anybody states.
        worth = _stated(sources, "importance", missing=0.0) + worth / 1000
        penalty = IMPORTANCE_PENALTY
    best = sorted(newest_first, key=lambda index: -worth[index])
    head = _diversified(sources, worth, best[:DIVERSIFIED], penalty)
    return [*head, *best[DIVERSIFIED:]]


def relevance(
    sources: Sequence[SourceMemory],
    *,
    focus: NDArray[np.float32] | None,
    now: datetime,
    half_life_days: float,
) -> Floats:
    """Worth of each source for the current context, in [0, 1].

    Traces: REQ-010-043
    """
    stated = _stated(sources, "relevance", missing=UNSTATED_RELEVANCE)
    age = np.array(
        [(now - source.record.occurred_at).total_seconds() / _DAY_SECONDS for source in sources]
    )
    recent = 0.5 ** (np.maximum(age, 0.0) / half_life_days)
    worth: Floats = RELEVANCE * stated + MATCH * _match(sources, focus) + RECENCY * recent
    return worth


def _match(sources: Sequence[SourceMemory], focus: NDArray[np.float32] | None) -> Floats:
    """Fit to the context from worst to best as 0 to 1, so that it weighs what it should."""
    raw = np.array([_fit(source, focus) for source in sources], dtype=np.float64)
    known = raw[~np.isnan(raw)]
    if known.size == 0:
        return np.zeros(len(sources))
    spread = known.max() - known.min()
    if spread <= 0:
        return np.where(np.isnan(raw), 0.0, 1.0)
    values: Floats = np.nan_to_num((raw - known.min()) / spread, nan=0.0)
    return values


def _fit(source: SourceMemory, focus: NDArray[np.float32] | None) -> float:
    if source.relevance is not None:
        return source.relevance
    if focus is None or source.vector is None or source.vector.shape != focus.shape:
        return float("nan")
    return (1 + float(source.vector @ focus)) / 2


def _stated(sources: Sequence[SourceMemory], field: str, *, missing: float) -> Floats:
    return np.array([_number(source.record.metadata.get(field), missing) for source in sources])


def _number(value: object, missing: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return missing
    return min(1.0, max(0.0, float(value)))


def _diversified(
    sources: Sequence[SourceMemory], worth: Floats, order: Sequence[int], penalty: float
) -> list[int]:
    """The order, with what resembles an earlier one put behind others of like worth."""
    vectors = _matrix(sources, order)
    if vectors is None:
        return list(order)
    remaining = worth[list(order)]
    likeness = np.zeros(len(order))
    taken: list[int] = []
    for _ in order:
        value = remaining - penalty * likeness
        place = int(np.argmax(value))
        taken.append(order[place])
        remaining[place] = -np.inf
        alike = (vectors @ vectors[place] - LIKE_FROM) / (1 - LIKE_FROM)
        np.maximum(likeness, np.clip(alike, 0.0, 1.0), out=likeness)
    return taken


def _matrix(sources: Sequence[SourceMemory], order: Sequence[int]) -> NDArray[np.float32] | None:
    """The vectors in that order, zeros where one is missing; None when there are none."""
    sizes = {vector.shape for index in order if (vector := sources[index].vector) is not None}
    if len(sizes) != 1:
        return None
    empty = np.zeros(sizes.pop(), dtype=np.float32)
    vectors = (sources[index].vector for index in order)
    return np.stack([empty if vector is None else vector for vector in vectors])


def _tie(source: SourceMemory) -> tuple[int, str]:
    return (-source.record.position, source.record.key)
