"""The figures of a bench, as pure functions of what was measured."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass


def percentile(samples: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest sample that `percent` % of all do not exceed.

    Args:
        samples: In any order; not empty.
        percent: Above 0, at most 100.

    Raises:
        ValueError: No samples, or a percent outside its range.
    """
    if not samples:
        raise ValueError("a percentile needs samples")
    if not 0 < percent <= 100:  # noqa: PLR2004 - per cent
        raise ValueError(f"a percentile lies above 0 and at most at 100, not at {percent}")
    rank = math.ceil(percent / 100 * len(samples))
    return sorted(samples)[rank - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Durations of one operation, in milliseconds.

    Attributes:
        samples: How many were measured.
    """

    samples: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """The figures of durations given in seconds; not empty."""
        return cls(
            samples=len(seconds),
            p50_ms=percentile(seconds, 50) * 1000,
            p95_ms=percentile(seconds, 95) * 1000,
            p99_ms=percentile(seconds, 99) * 1000,
            mean_ms=mean(seconds) * 1000,
        )


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else 0.0


def any_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """1 if one of the first `k` is relevant, else 0."""
    return float(any(item in relevant for item in ranked[:k]))


def fraction_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """The share of the relevant ones that is among the first `k`; 0 when nothing is relevant."""
    wanted = set(relevant)
    return len(wanted.intersection(ranked[:k])) / len(wanted) if wanted else 0.0


def precision_at(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Relevant ones among the first `k`, divided by `k`, however few were found.

    Raises:
        ValueError: `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"precision at {k} is not defined")
    return sum(item in relevant for item in ranked[:k]) / k
