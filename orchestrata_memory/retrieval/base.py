"""Values that flow through the ranking pipeline: candidates, features, scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orchestrata_memory.cold.base import TermStatistics
from orchestrata_memory.models import ScoreExplanation

Slot = tuple[str, str, int]
"""(session_id, volk_id, position): a place in the stream of one owner's session."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Passage:
    """What ranking needs to know of one version of one memory.

    Never changed once made; not frozen, as that takes three times as long to make and a search
    makes hundreds.

    Attributes:
        terms: Index terms in text order, duplicates kept.
        cosine: With the query vector; None without one of the two.
        relevance: ``metadata["relevance"]``, or None.
        tokens: Packed token vectors, or None.
        tier: ``hot`` or ``cold``.
    """

    key: str
    version: int
    slot: Slot
    terms: tuple[str, ...]
    speaker: str
    created_at: datetime
    occurred_at: datetime
    relevance: float | None = None
    cosine: float | None = None
    tokens: bytes | None = None
    tier: str = "hot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Everything the ranking of one query looks at.

    Attributes:
        candidates: What may be returned; all readable by the caller as far as the pre-filter and
            the scope say.
        context: Passages by slot that count as context of a candidate: the candidates and
            their neighbours that the caller may read.
        statistics: Of what the caller may read in the scope, for the query's terms.
    """

    candidates: tuple[Passage, ...]
    context: Mapping[Slot, Passage] = field(default_factory=dict)
    statistics: TermStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One candidate with its score in [0, 1].

    Attributes:
        holds_term: It holds a term of the query itself (stop words aside), so `min_similarity`
            does not apply.
        explain: Works out `explanation`.
    """

    passage: Passage
    score: float
    holds_term: bool
    explain: Callable[[], ScoreExplanation] = field(repr=False, compare=False)

    @property
    def explanation(self) -> ScoreExplanation:
        """How the score came about; worked out when asked for."""
        return self.explain()
