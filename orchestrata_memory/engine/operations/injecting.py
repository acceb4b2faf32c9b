"""inject: what matters for a task, into a CXP packet, within a budget."""

from __future__ import annotations

from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.engine.doorway import Call, Doorway
from orchestrata_memory.engine.operations.gathering import Gatherer, unique
from orchestrata_memory.engine.operations.searching import Searching
from orchestrata_memory.engine.rights import READ_RULE
from orchestrata_memory.engine.summary_maker import SummaryMaker, SummaryRequest
from orchestrata_memory.errors import MemoryUnavailableError, MemoryValidationError
from orchestrata_memory.interfaces import CXPPacket
from orchestrata_memory.models import (
    InjectionResult,
    InjectionStrategy,
    MemoryRecord,
    MemoryScope,
    MemorySummary,
)
from orchestrata_memory.models.validation import check_max_tokens, check_query
from orchestrata_memory.summaries.sources import SourceMemory

MEMORY_CONTEXT = "memory_context"
FOUND_AT_MOST = 50
"""How many memories of the project a task's text may bring in."""

FOUND_SIMILARITY = 0.6
"""Less like the task than this by meaning alone, a memory of another session stays out."""


class Injecting:
    """Fills packets.

    Traces: REQ-010-042, REQ-010-044
    """

    def __init__(
        self,
        *,
        doorway: Doorway,
        searching: Searching,
        maker: SummaryMaker,
        gatherer: Gatherer,
        settings: MemoryEngineSettings,
    ) -> None:
        self._doorway = doorway
        self._searching = searching
        self._maker = maker
        self._gatherer = gatherer
        self._settings = settings

    async def inject(
        self,
        packet: CXPPacket,
        task: str,
        *,
        budget_tokens: int | None,
        strategy: InjectionStrategy | None,
    ) -> InjectionResult:
        """See `MemoryEngine.inject`."""
        call = self._doorway.enter("inject")
        _check_packet(packet)
        request = self._request(task, budget_tokens, strategy)
        sources = await self._sources(call, task) if self._settings.injection_enabled else []
        summary = await self._maker.make(call, sources, request)
        packet.metadata[MEMORY_CONTEXT] = _memory_context(request, summary)
        await self._doorway.note(call, READ_RULE, f"sources={summary.source_count}")
        return InjectionResult(
            token_budget=request.max_tokens,
            tokens_used=summary.token_count,
            remaining=request.max_tokens - summary.token_count,
            summary=summary,
        )

    def _request(
        self, task: str, budget_tokens: int | None, strategy: InjectionStrategy | None
    ) -> SummaryRequest:
        budget = self._settings.injection_budget_tokens if budget_tokens is None else budget_tokens
        try:
            known = InjectionStrategy(strategy or self._settings.injection_strategy)
        except ValueError:
            names = ", ".join(InjectionStrategy)
            raise MemoryValidationError("strategy", f"must be one of {names}") from None
        return SummaryRequest(
            max_tokens=check_max_tokens(budget),
            strategy=known,
            focus=check_query(task),
            abstractive=None,
        )

    async def _sources(self, call: Call, task: str) -> list[SourceMemory]:
        """What the task's text finds in the caller's project, and the session's own entries."""
        outcome = await self._searching.run(
            call,
            task,
            scope=MemoryScope(project_id=call.context.project_id),
            limit=FOUND_AT_MOST,
            min_similarity=FOUND_SIMILARITY,
            include_summaries=False,
        )
        own = await self._own(call)
        found = [hit.record for hit in outcome.hits]
        # One scale for all: what the search did not bring up fits the task less than what it did.
        scores = dict.fromkeys((record.key for record in own), 0.0) if found else {}
        scores |= {hit.record.key: hit.score for hit in outcome.hits}
        return await self._gatherer.with_vectors(unique([*found, *own]), scores)

    async def _own(self, call: Call) -> list[MemoryRecord]:
        """The session's entries; without the graph those that the search has seen must do."""
        context = call.context
        try:
            return await self._gatherer.of_context(
                context, context.session_id, include_summaries=False
            )
        except MemoryUnavailableError:
            return []


def _check_packet(packet: object) -> None:
    """Whatever class the kernel's packets have, theirs must be filled."""
    if not isinstance(getattr(packet, "metadata", None), dict):
        kind = type(packet).__name__
        raise MemoryValidationError("packet", f"must have a dict `metadata`, which {kind} has not")


def _memory_context(request: SummaryRequest, summary: MemorySummary) -> dict[str, object]:
    return {
        "injected_keys": list(summary.source_keys),
        "token_budget": request.max_tokens,
        "tokens_used": summary.token_count,
        "strategy": str(request.strategy),
        "summary": summary.content,
    }
