"""The memory engine: one method for every operation."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from orchestrata_memory.engine.lifecycle import EngineLifecycle
from orchestrata_memory.engine.operations.reading import MemoryLineage, RelatedMemory
from orchestrata_memory.engine.operations.searching import TagMatch
from orchestrata_memory.interfaces import CXPPacket, IMemoryEngine, SystemEvent, Topic
from orchestrata_memory.models import (
    SYSTEM_VOLK,
    AuditRecord,
    Delegation,
    InjectionResult,
    InjectionStrategy,
    MemoryClassification,
    MemoryEntry,
    MemoryScope,
    MemorySummary,
    SummarizationStrategy,
)
from orchestrata_memory.models.validation import check_identifier


class MemoryEngine(EngineLifecycle, IMemoryEngine):
    """Memory over a hot and a cold tier; made by `container.build_engine`.

    Every operation acts for the caller that `memory_context` names; `BoundMemory` is a handle for
    one caller.

    Traces: REQ-010-001
    """

    # --- the seven operations ------------------------------------------------------------
    async def store(
        self,
        content: str,
        *,
        key: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        classification: MemoryClassification = MemoryClassification.PRIVATE,
    ) -> MemoryEntry:
        return await self._wired.writing.store(content, key, tags, metadata, classification)

    async def retrieve(self, key: str, *, include_metadata: bool = True) -> MemoryEntry | None:
        return await self._wired.reading.retrieve(key, include_metadata=include_metadata)

    async def search(
        self,
        query: str,
        *,
        scope: MemoryScope | None = None,
        limit: int = 10,
        min_similarity: float = 0.7,
        explain: bool = False,
    ) -> list[MemoryEntry]:
        return await self._wired.searching.search(
            query, scope=scope, limit=limit, min_similarity=min_similarity, explain=explain
        )

    async def summarize(
        self,
        context_id: str,
        *,
        max_tokens: int = 2048,
        strategy: SummarizationStrategy = SummarizationStrategy.RELEVANCE,
        abstractive: bool | None = None,
        include_summaries: bool = False,
    ) -> MemorySummary:
        return await self._wired.summarizing.summarize(
            context_id,
            max_tokens=max_tokens,
            strategy=strategy,
            abstractive=abstractive,
            include_summaries=include_summaries,
        )

    async def update(
        self,
        key: str,
        *,
        content: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        classification: MemoryClassification | None = None,
    ) -> MemoryEntry:
        return await self._wired.writing.update(key, content, tags, metadata, classification)

    async def delete(self, key: str) -> bool:
        return await self._wired.writing.delete(key)

    async def migrate_to_cold(self, session_id: str) -> int:
        return await self._wired.closing.migrate(session_id)

    # --- beyond the interface ------------------------------------------------------------
    async def find(
        self,
        *,
        tags: list[str] | None = None,
        match: TagMatch = "all",
        scope: MemoryScope | None = None,
        limit: int = 10,
    ) -> list[MemoryEntry]:
        """Memories with all (or any) of the tags, within the scope, newest first.

        Traces: REQ-010-012, REQ-010-013, REQ-010-030
        """
        return await self._wired.searching.find(tags=tags, match=match, scope=scope, limit=limit)

    async def related(self, key: str, *, depth: int = 1, limit: int = 10) -> list[RelatedMemory]:
        """Memories up to `depth` (1 to 5) steps away in the graph, nearest first.

        Traces: REQ-010-031
        """
        return await self._wired.reading.related(key, depth=depth, limit=limit)

    async def lineage(self, key: str) -> MemoryLineage:
        """What a stored summary was made from, and what that was made from."""
        return await self._wired.reading.lineage(key)

    async def audit_trail(self, key: str, *, limit: int = 100) -> list[AuditRecord]:
        """Who did what to a key, oldest first; for its owner and ``system_admin``."""
        return await self._wired.reading.audit_trail(key, limit=limit)

    async def share(self, key: str, volk_id: str) -> MemoryEntry:
        """Let another registered Volk, not the owner, read an own entry."""
        return await self._wired.sharing.share(key, volk_id)

    async def unshare(self, key: str, volk_id: str) -> MemoryEntry:
        """Take that back."""
        return await self._wired.sharing.unshare(key, volk_id)

    async def delegate(self, volk_id: str, *, expires_at: datetime | None = None) -> Delegation:
        """Pass on to another Volk what is shared with the caller, never what it owns."""
        return await self._wired.sharing.delegate(volk_id, expires_at)

    async def revoke(self, volk_id: str) -> bool:
        """Take a delegation back; False when none stands."""
        return await self._wired.sharing.revoke(volk_id)

    async def promote(self, key: str) -> bool:
        """Copy a cold memory into the caller's open session."""
        return await self._wired.searching.promote(key)

    async def store_summary(
        self,
        context_id: str,
        *,
        max_tokens: int = 2048,
        strategy: SummarizationStrategy = SummarizationStrategy.RELEVANCE,
        abstractive: bool | None = None,
        include_summaries: bool = False,
    ) -> MemoryEntry | None:
        """Summarize and keep the summary as a memory; None when there is nothing to summarize.

        Doing it again with nothing changed returns the same entry.
        """
        return await self._wired.summarizing.store_summary(
            context_id,
            max_tokens=max_tokens,
            strategy=strategy,
            abstractive=abstractive,
            include_summaries=include_summaries,
        )

    async def inject(
        self,
        packet: CXPPacket,
        task: str,
        *,
        budget_tokens: int | None = None,
        strategy: InjectionStrategy | None = None,
    ) -> InjectionResult:
        """Put what matters for `task` into ``packet.metadata["memory_context"]``.

        Args:
            packet: Changed in place; any object whose ``metadata`` is a dict.
            task: What the Volk is about to do.
            budget_tokens: At least 16; the configured one when omitted.
            strategy: The configured one when omitted.

        Traces: REQ-010-042, REQ-010-044
        """
        return await self._wired.injecting.inject(
            packet, task, budget_tokens=budget_tokens, strategy=strategy
        )

    async def close_session(self, session_id: str, *, outcome: str = "completed") -> None:
        """Say on the kernel's bus that a session is closed, as a session manager would.

        Once it returns the close stands, whatever becomes of this process; memories that could
        not move yet follow by themselves.

        Raises:
            MemoryUnavailableError: Redis is down, so the close could not be recorded. This engine
                makes up for it as long as it runs; to be sure, close again.
        """
        self._ensure_running()
        check_identifier(session_id, "session_id")
        await self.kernel.emit_event(
            SystemEvent(
                type=Topic.SESSION_CLOSED,
                source=SYSTEM_VOLK,
                payload={"session_id": session_id, "outcome": outcome},
            )
        )
        # A bus tells nobody whether its handlers got that far.
        await self.parts.hot.mark_closed(session_id)

    async def settle(self, timeout_seconds: float = 60.0) -> bool:
        """Wait until everything accepted so far is in cold.

        Returns:
            False when it was not in time, or when a fault keeps anything from getting there for
            ten seconds: what waits is safe, and goes on when the fault is over.
        """
        self._ensure_running()
        return await self._settle(timeout_seconds)
