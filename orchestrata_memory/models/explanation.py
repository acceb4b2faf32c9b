"""How a relevance score came about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreExplanation:
    """The parts of one `relevance_score`, each value and its weight in [0, 1].

    Attributes:
        score: The sum of weight times value over `parts`.
        parts: Name of the evidence to (weight, value), such as ``relevance``, ``match``,
            ``recency``.
        match: The evidence behind ``match``: feature name to (weight, value).
        terms: Terms of the query that the entry holds.
        similarity: (1 + cosine) / 2, or None while no vector exists.
        tier: ``hot`` or ``cold``.
    """

    score: float
    parts: dict[str, tuple[float, float]]
    match: dict[str, tuple[float, float]]
    terms: tuple[str, ...]
    similarity: float | None
    tier: str
