"""The memory engine's contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from orchestrata_memory.interfaces.component import IComponent
from orchestrata_memory.models import (
    MemoryClassification,
    MemoryEntry,
    MemoryScope,
    MemorySummary,
    SummarizationStrategy,
)


class IMemoryEngine(IComponent, ABC):
    """Memory of Volks over a hot and a cold tier.

    Every operation acts for the caller set by `memory_context`, is checked against the rules and
    audited, and raises a `MemoryEngineError` that says what was wrong. After an error nothing is
    half done.

    Traces: REQ-010-001
    """

    @abstractmethod
    async def store(
        self,
        content: str,
        *,
        key: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        classification: MemoryClassification = MemoryClassification.PRIVATE,
    ) -> MemoryEntry:
        """Store a memory of the caller's session; durable in the hot tier on return.

        Args:
            content: 1 byte to the configured limit (64 KiB) of UTF-8, not blank, no NUL.
            key: 1 to 512 bytes; a UUID4 when omitted. An explicit key must be free, except that
                storing the very same thing again returns the existing entry.
            tags: At most the configured number, each 1 to 512 bytes; duplicates are dropped.
            metadata: A JSON object. Well known: ``relevance`` and ``importance`` (0 to 1),
                ``occurred_at`` (aware ISO 8601), ``speaker``.
            classification: What the caller may store is up to the rules.

        Raises:
            MemoryValidationError: An argument breaks a rule.
            MemoryAccessDeniedError: ``can_store_memory`` does not hold.
            MemoryKeyExistsError: The explicit key is taken.
            MemoryUnavailableError: Hot is down; or cold is, and the key is explicit.
            MemoryBackpressureError: The outbox is full.

        Traces: REQ-010-006, REQ-010-007, REQ-010-009
        """

    @abstractmethod
    async def retrieve(self, key: str, *, include_metadata: bool = True) -> MemoryEntry | None:
        """The memory with that key, or None when there is none.

        Args:
            key: The key.
            include_metadata: False leaves tags and metadata empty.

        Raises:
            MemoryAccessDeniedError: ``can_read_memory`` does not hold.

        Traces: REQ-010-011
        """

    @abstractmethod
    async def search(
        self,
        query: str,
        *,
        scope: MemoryScope | None = None,
        limit: int = 10,
        min_similarity: float = 0.7,
    ) -> list[MemoryEntry]:
        """The memories that match by words or meaning, best first.

        Args:
            query: Text; not blank.
            scope: Filters; None looks at everything the caller may read.
            limit: 1 to 10,000.
            min_similarity: 0 to 1, as (1 + cosine) / 2; applies to entries that hold no term of
                the query.

        Returns:
            Entries with `relevance_score` in [0, 1], falling. At least `limit` qualifying
            entries give `limit` results.

        Traces: REQ-010-015, REQ-010-016, REQ-010-017, REQ-010-018, REQ-010-019
        """

    @abstractmethod
    async def summarize(
        self,
        context_id: str,
        *,
        max_tokens: int = 2048,
        strategy: SummarizationStrategy = SummarizationStrategy.RELEVANCE,
    ) -> MemorySummary:
        """A summary of what the caller may read of a session or task; stores nothing.

        Args:
            context_id: A session id or a task id.
            max_tokens: At least 16, by the caller's token counter.
            strategy: What to draw on first.

        Traces: REQ-010-020, REQ-010-022
        """

    @abstractmethod
    async def update(
        self,
        key: str,
        *,
        content: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        classification: MemoryClassification | None = None,
    ) -> MemoryEntry:
        """Change what is given of an own memory, from any session.

        Raises:
            MemoryValidationError: Nothing is given, or an argument breaks a rule.
            MemoryNotFoundError: No such key.
            MemoryAccessDeniedError: Not the owner, or the new classification is not allowed.

        Traces: REQ-010-050
        """

    @abstractmethod
    async def delete(self, key: str) -> bool:
        """Delete an own memory for good; False when there is none.

        Raises:
            MemoryAccessDeniedError: ``can_delete_memory`` does not hold.
        """

    @abstractmethod
    async def migrate_to_cold(self, session_id: str) -> int:
        """Move a session's memories to the cold tier; the number of entries moved.

        As ``SYS:MEMORY``, or without a caller from the kernel's bus, everything of the session;
        as a Volk, what it owns there.

        Traces: REQ-010-032
        """
