"""The memory entry as callers see it, and its classification."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrata_memory.models.explanation import ScoreExplanation


class MemoryClassification(StrEnum):
    """Who may read an entry besides its owner.

    ``private``: those it was shared with. ``shared`` and ``system``: every registered Volk.
    """

    PRIVATE = "private"
    SHARED = "shared"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One memory.

    Attributes:
        key: Unique in the whole engine.
        content: The text, exactly as stored.
        summary: A short form, or None.
        tags: Distinct, in the order given.
        metadata: JSON object.
        classification: See `MemoryClassification`.
        embedding: Unit-length vector, given by `retrieve` once it is computed, else None. Derived
            from the content, so it does not count when entries are compared.
        created_at: Aware, UTC, microseconds.
        updated_at: Equals created_at until the first update.
        volk_id: The owner.
        session_id: The session of origin; never changes.
        relevance_score: In [0, 1] for a search result, otherwise None.
        version: 1 for a new key, one more with every change.
        explanation: How the score came about, when asked for.

    Traces: REQ-010-004, REQ-010-014
    """

    key: str
    content: str
    summary: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    classification: MemoryClassification = MemoryClassification.PRIVATE
    embedding: tuple[float, ...] | None = field(default=None, compare=False, repr=False)
    created_at: datetime
    updated_at: datetime
    volk_id: str
    session_id: str
    relevance_score: float | None = None
    task_id: str | None = None
    project_id: str | None = None
    portfolio_id: str | None = None
    version: int = 1
    token_count: int = 0
    shared_with: tuple[str, ...] = ()
    explanation: ScoreExplanation | None = None
