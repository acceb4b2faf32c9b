"""A memory as the stores hold it, and the states a key can be in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from orchestrata_memory.models.entry import MemoryClassification, MemoryEntry
from orchestrata_memory.models.explanation import ScoreExplanation


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """The full state of one version of one memory.

    A record is immutable and (key, version) names it for good, so anything computed from it may
    be cached under that pair.

    Attributes:
        position: Place in its stream (the entries of one owner in one session), from 1, given by
            the hot tier at the first store; neighbours of a memory are the records at the
            neighbouring positions. 0 until then.
        content_hash: Hex SHA-256 of the content.
        shared_with: Volks it was shared with, sorted.
        sources: For a stored summary, the keys it was made from; else empty.
        source_versions: Versions of `sources` when it was made, in the same order.
    """

    key: str
    content: str
    volk_id: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    content_hash: str
    summary: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    classification: MemoryClassification = MemoryClassification.PRIVATE
    task_id: str | None = None
    project_id: str | None = None
    portfolio_id: str | None = None
    token_count: int = 0
    version: int = 1
    shared_with: tuple[str, ...] = ()
    position: int = 0
    sources: tuple[str, ...] = ()
    source_versions: tuple[int, ...] = ()

    @property
    def occurred_at(self) -> datetime:
        """``metadata["occurred_at"]``, in UTC if it has no offset; without a time, `created_at`."""
        value = self.metadata.get("occurred_at")
        try:
            time = datetime.fromisoformat(value) if isinstance(value, str) else self.created_at
            return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return self.created_at

    @property
    def relevance(self) -> float | None:
        """``metadata["relevance"]``; None without a finite number there."""
        return _finite(self.metadata.get("relevance"))

    @property
    def importance(self) -> float | None:
        """``metadata["importance"]``; None without a finite number there."""
        return _finite(self.metadata.get("importance"))

    @property
    def speaker(self) -> str:
        """Who said it: ``metadata["speaker"]``, else the owner."""
        value = self.metadata.get("speaker")
        return value if isinstance(value, str) and value else self.volk_id

    def changed(self, **changes: Any) -> MemoryRecord:  # noqa: ANN401 - dataclasses.replace
        """A copy with the given fields changed."""
        return replace(self, **changes)

    def to_entry(
        self,
        *,
        embedding: tuple[float, ...] | None = None,
        score: float | None = None,
        explanation: ScoreExplanation | None = None,
    ) -> MemoryEntry:
        """The entry a caller sees."""
        return MemoryEntry(
            key=self.key,
            content=self.content,
            summary=self.summary,
            tags=self.tags,
            metadata=self.metadata,
            classification=self.classification,
            embedding=embedding,
            created_at=self.created_at,
            updated_at=self.updated_at,
            volk_id=self.volk_id,
            session_id=self.session_id,
            relevance_score=score,
            task_id=self.task_id,
            project_id=self.project_id,
            portfolio_id=self.portfolio_id,
            version=self.version,
            token_count=self.token_count,
            shared_with=self.shared_with,
            explanation=explanation,
        )


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


class KeyState(StrEnum):
    """What the hot tier knows of a key.

    ``unknown``: nothing; ask cold. ``live``: hot (or the outbox) holds the newest version.
    ``deleted``: a tombstone is the newest state, whatever cold says. ``cold``: cold holds the
    newest version, whose number is known here; hot may hold a replica of it.
    """

    UNKNOWN = "unknown"
    LIVE = "live"
    DELETED = "deleted"
    COLD = "cold"
