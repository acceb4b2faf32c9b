"""Making one summary: its focus, its words, and the provider's own count of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.engine.doorway import Call
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.interfaces import Severity, Topic
from orchestrata_memory.models import (
    InjectionStrategy,
    MemoryContext,
    MemorySummary,
    SummarizationStrategy,
)
from orchestrata_memory.summaries.abstractive import AbstractiveSummarizer
from orchestrata_memory.summaries.checked import TokenCheck, checked
from orchestrata_memory.summaries.extractive import Strategy, summarize
from orchestrata_memory.summaries.sources import SourceMemory
from orchestrata_memory.tokens.base import ITokenCounter
from orchestrata_memory.tokens.registry import is_anthropic

FOCUS_ENTRIES = 5
"""Without a focus, the newest so many entries of the context are the current context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """How to summarize.

    Attributes:
        focus: Text of the current context; None: the newest entries are it.
        abstractive: None: as configured.
    """

    max_tokens: int
    strategy: Strategy
    focus: str | None
    abstractive: bool | None


class SummaryMaker:
    """Turns readable sources into a summary, and warns when material was left out.

    Traces: REQ-010-021, REQ-010-042
    """

    def __init__(
        self,
        *,
        embedder: Embedder,
        counter_for: Callable[[MemoryContext], ITokenCounter],
        abstractive: AbstractiveSummarizer | None,
        abstractive_by_default: bool,
        token_check: TokenCheck | None,
        half_life_days: float,
        notices: Notices,
    ) -> None:
        self._embedder = embedder
        self._counter_for = counter_for
        self._abstractive = abstractive
        self._abstractive_by_default = abstractive_by_default
        self._token_check = token_check
        self._half_life_days = half_life_days
        self._notices = notices

    async def make(
        self, call: Call, sources: Sequence[SourceMemory], request: SummaryRequest
    ) -> MemorySummary:
        """A summary of sources that the caller may read."""
        focus = await self._focus(sources, request)

        async def within(max_tokens: int) -> MemorySummary:
            return await self._make(call, sources, replace(request, max_tokens=max_tokens), focus)

        summary = await within(request.max_tokens)
        context = call.context
        if self._token_check and context.model and is_anthropic(context.provider):
            summary = await checked(
                summary,
                check=self._token_check,
                model=context.model,
                max_tokens=request.max_tokens,
                again=within,
            )
        if summary.omitted:
            await self._warn(call, request, summary)
        return summary

    async def _make(
        self,
        call: Call,
        sources: Sequence[SourceMemory],
        request: SummaryRequest,
        focus: NDArray[np.float32] | None,
    ) -> MemorySummary:
        counter = self._counter_for(call.context)
        wanted = request.abstractive
        if wanted is None:
            wanted = self._abstractive_by_default
        if wanted and self._abstractive is not None:
            return await self._abstractive.summarize(
                sources,
                strategy=request.strategy,
                counter=counter,
                max_tokens=request.max_tokens,
                now=call.at,
                focus=focus,
                half_life_days=self._half_life_days,
                focus_text=request.focus or "",
                reader=call.volk_id,
            )
        return await asyncio.to_thread(
            summarize,
            sources,
            strategy=request.strategy,
            counter=counter,
            max_tokens=request.max_tokens,
            now=call.at,
            focus=focus,
            half_life_days=self._half_life_days,
            reader=call.volk_id,
        )

    async def _focus(
        self, sources: Sequence[SourceMemory], request: SummaryRequest
    ) -> NDArray[np.float32] | None:
        """Vector of the current context; None when nothing can be said about it."""
        if request.strategy in {SummarizationStrategy.RECENCY, InjectionStrategy.RECENCY}:
            return None
        if request.focus:
            try:
                return (await self._embedder.embed_query(request.focus)).vector
            except MemoryEmbeddingError:
                return None
        newest = sorted(sources, key=lambda source: source.record.created_at)[-FOCUS_ENTRIES:]
        vectors = [source.vector for source in newest if source.vector is not None]
        if not vectors:
            return None
        mean = np.mean(vectors, axis=0)
        length = float(np.linalg.norm(mean))
        return (mean / length).astype(np.float32) if length > 0 else None

    async def _warn(self, call: Call, request: SummaryRequest, summary: MemorySummary) -> None:
        await self._notices.emit(
            Topic.BUDGET_WARNING,
            {
                "volk_id": call.volk_id,
                "session_id": call.context.session_id,
                "token_budget": request.max_tokens,
                "tokens_used": summary.token_count,
                "sources": summary.source_count,
                "omitted": summary.omitted,
            },
            severity=Severity.WARNING,
        )
