"""Values that flow through the ranking pipeline: candidates, features, scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orchestrata_memory.cold.base import TermStatistics
from orchestrata_memory.models import MemoryRecord, ScoreExplanation

Slot = tuple[str, str, int]
"""(session_id, volk_id, position): a place in the stream of one owner's session. Nothing stands
beside a place whose position is 0."""


def slot_of(record: MemoryRecord) -> Slot:
    """Where a record stands; a stored summary was not said between its neighbours."""
    return record.session_id, record.volk_id, 0 if record.sources else record.position


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Passage:
    """What ranking needs to know of one version of one memory, whatever is asked.

    Never changed once made, as searches share it; not frozen, as that takes three times as long
    to make and a cold search makes hundreds.

    Attributes:
        terms: Index terms in text order, duplicates kept.
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
    tokens: bytes | None = None
    tier: str = "hot"


@dataclass(slots=True, kw_only=True)
class Found:
    """Memories that were found, by key.

    Attributes:
        passages: For the ranking.
        records: What the rules are asked about; those of hot have no content.
        cosines: With the query's vector, of those that have a vector.
    """

    passages: dict[str, Passage] = field(default_factory=dict)
    records: dict[str, MemoryRecord] = field(default_factory=dict)
    cosines: dict[str, float] = field(default_factory=dict)

    def add(self, other: Found, *, only: Collection[str] | None = None) -> None:
        """Add what another look found (of it `only` these); what is here already stays."""
        for key, passage in other.passages.items():
            if key not in self.passages and (only is None or key in only):
                self.passages[key], self.records[key] = passage, other.records[key]
                if key in other.cosines:
                    self.cosines[key] = other.cosines[key]

    def drop(self, keys: Iterable[str]) -> None:
        """Leave out memories that the caller may not read."""
        for key in keys:
            self.passages.pop(key, None)
            self.records.pop(key, None)
            self.cosines.pop(key, None)

    def by_slot(self) -> dict[Slot, Passage]:
        """These memories as context of one another."""
        return {one.slot: one for one in self.passages.values() if one.slot[2] > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Everything the ranking of one query looks at.

    Attributes:
        candidates: What may be returned; all readable by the caller as far as the pre-filter and
            the scope say.
        context: Passages by slot that count as context of a candidate: the candidates and
            their neighbours that the caller may read.
        cosines: With the query's vector by key, candidates' and context's; none where a vector
            is missing.
        statistics: Of what the caller may read in the scope, for the query's terms.
    """

    candidates: tuple[Passage, ...]
    context: Mapping[Slot, Passage] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    statistics: TermStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One candidate with its score in [0, 1].

    Attributes:
        cosine: With the query's vector; None without one of the two.
        holds_term: It holds a term of the query itself (stop words aside), so `min_similarity`
            does not apply.
        explain: Works out `explanation`.
    """

    passage: Passage
    score: float
    cosine: float | None
    holds_term: bool
    explain: Callable[[], ScoreExplanation] = field(repr=False, compare=False)

    @property
    def explanation(self) -> ScoreExplanation:
        """How the score came about; worked out when asked for."""
        return self.explain()
