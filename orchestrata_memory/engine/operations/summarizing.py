"""summarize and store_summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrata_memory.engine.doorway import Call, Doorway
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.engine.operations.gathering import Gatherer
from orchestrata_memory.engine.operations.writing import STORE_RULE, Writing
from orchestrata_memory.engine.rights import READ_RULE
from orchestrata_memory.engine.summary_maker import SummaryMaker, SummaryRequest
from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.interfaces import Topic
from orchestrata_memory.models import (
    MemoryEntry,
    MemoryRecord,
    MemorySummary,
    SummarizationStrategy,
)
from orchestrata_memory.models.hashing import content_hash
from orchestrata_memory.models.validation import check_identifier, check_max_tokens
from orchestrata_memory.summaries.keys import narrowest, summary_key


class Summarizing:
    """Operations that compress.

    Traces: REQ-010-020, REQ-010-021
    """

    def __init__(
        self,
        *,
        doorway: Doorway,
        governance: Governance,
        gatherer: Gatherer,
        tiers: Tiers,
        maker: SummaryMaker,
        writing: Writing,
        notices: Notices,
        content_bytes: int,
    ) -> None:
        self._doorway = doorway
        self._governance = governance
        self._gatherer = gatherer
        self._tiers = tiers
        self._maker = maker
        self._writing = writing
        self._notices = notices
        self._content_bytes = content_bytes

    async def summarize(
        self,
        context_id: str,
        *,
        max_tokens: int,
        strategy: SummarizationStrategy,
        abstractive: bool | None,
        include_summaries: bool,
    ) -> MemorySummary:
        """See `IMemoryEngine.summarize`.

        Args:
            context_id: A session id or a task id.
            max_tokens: The budget.
            strategy: What to draw on first.
            abstractive: In a language model's words, where one is configured; None: as configured.
            include_summaries: Stored summaries count as sources too.
        """
        call = self._doorway.enter("summarize")
        request = _checked(call, context_id, max_tokens, strategy, abstractive)
        records = await self._gatherer.of_context(
            call.context, context_id, include_summaries=include_summaries
        )
        summary = await self._maker.make(call, await self._gatherer.with_vectors(records), request)
        await self._doorway.note(call, READ_RULE, f"sources={summary.source_count}")
        await self._announce(call, context_id, summary)
        return summary

    async def store_summary(
        self,
        context_id: str,
        *,
        max_tokens: int,
        strategy: SummarizationStrategy,
        abstractive: bool | None,
        include_summaries: bool,
    ) -> MemoryEntry | None:
        """Summarize and keep the result; see `MemoryEngine.store_summary`.

        Raises:
            MemoryValidationError: The summary is longer than the content of a memory may be.

        Traces: REQ-010-035
        """
        call = self._doorway.enter("store")
        request = _checked(call, context_id, max_tokens, strategy, abstractive)
        records = await self._gatherer.of_context(
            call.context, context_id, include_summaries=include_summaries
        )
        summary = await self._maker.make(call, await self._gatherer.with_vectors(records), request)
        if not summary.source_keys:
            await self._doorway.note(call, READ_RULE, "nothing to summarize")
            return None
        size = len(summary.content.encode())
        if size > self._content_bytes:
            raise MemoryValidationError(
                "max_tokens",
                f"the summary has {size} bytes of UTF-8 and a memory at most "
                f"{self._content_bytes}: take a smaller budget, or raise limits.content_bytes",
            )
        by_key = {record.key: record for record in records}
        sources = [by_key[key] for key in summary.source_keys]
        return (await self._keep(call, summary, sources, request)).to_entry()

    async def _keep(
        self,
        call: Call,
        summary: MemorySummary,
        sources: Sequence[MemoryRecord],
        request: SummaryRequest,
    ) -> MemoryRecord:
        key = summary_key(
            owner=call.volk_id,
            sources=[(source.key, source.version) for source in sources],
            strategy=request.strategy,
            budget=request.max_tokens,
            counter=summary.counter,
            focus=request.focus,
            method=summary.method,
        )
        call = replace(call, key=key)
        classification = narrowest(source.classification for source in sources)
        decision = await self._governance.can_store(call.volk_id, classification)
        await self._doorway.require(call, decision, f"classification={classification}")
        standing = await self._tiers.locate(key)
        if standing is not None and standing.record.volk_id == call.volk_id:
            await self._doorway.note(call, STORE_RULE, "unchanged")
            return standing.record
        context = call.context
        record = MemoryRecord(
            key=key,
            content=summary.content,
            volk_id=call.volk_id,
            session_id=context.session_id,
            task_id=context.task_id,
            project_id=context.project_id,
            portfolio_id=context.portfolio_id,
            created_at=call.at,
            updated_at=call.at,
            content_hash=content_hash(summary.content),
            classification=classification,
            metadata={"strategy": str(summary.strategy), "method": summary.method},
            token_count=summary.token_count,
            sources=tuple(source.key for source in sources),
            source_versions=tuple(source.version for source in sources),
        )
        return await self._writing.put(call, record, explicit=True)

    async def _announce(self, call: Call, context_id: str, summary: MemorySummary) -> None:
        await self._notices.emit(
            Topic.SUMMARIZE_COMPLETED,
            {
                "volk_id": call.volk_id,
                "context_id": context_id,
                "strategy": str(summary.strategy),
                "method": summary.method,
                "token_count": summary.token_count,
                "source_count": summary.source_count,
            },
        )


def _checked(
    call: Call,
    context_id: str,
    max_tokens: int,
    strategy: SummarizationStrategy,
    abstractive: bool | None,
) -> SummaryRequest:
    check_identifier(context_id, "context_id")
    try:
        known = SummarizationStrategy(strategy)
    except ValueError:
        names = ", ".join(SummarizationStrategy)
        raise MemoryValidationError("strategy", f"must be one of {names}") from None
    return SummaryRequest(
        max_tokens=check_max_tokens(max_tokens),
        strategy=known,
        focus=call.context.focus,
        abstractive=abstractive,
    )
