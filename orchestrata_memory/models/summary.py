"""Summaries, their strategies and what an injection returns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SummarizationStrategy(StrEnum):
    """What decides which memories a summary draws on first."""

    RELEVANCE = "relevance"
    RECENCY = "recency"
    IMPORTANCE = "importance"


class InjectionStrategy(StrEnum):
    """What an injection prefers; ``hybrid`` gives relevance and recency half the budget each."""

    RELEVANCE = "relevance"
    RECENCY = "recency"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySummary:
    """A text within a token budget, and where it came from.

    Attributes:
        content: At most the asked-for number of tokens by `counter`.
        token_count: Tokens of `content` by `counter`.
        source_count: Number of `source_keys`.
        source_keys: Exactly the entries drawn on, in order of first use.
        strategy: The strategy that chose them.
        created_at: Aware, UTC.
        counter: Name of the token counter, such as ``tiktoken:cl100k_base``.
        method: ``extractive`` or ``abstractive``.
        omitted: Readable entries that had to be left out for the budget.
        key: Key of the stored summary, or None.

    Traces: REQ-010-023
    """

    content: str
    token_count: int
    source_count: int
    source_keys: tuple[str, ...]
    strategy: SummarizationStrategy | InjectionStrategy
    created_at: datetime
    counter: str = "words"
    method: str = "extractive"
    omitted: int = 0
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionResult:
    """What one injection used and left.

    Attributes:
        token_budget: The budget asked for.
        tokens_used: Tokens of the injected summary.
        remaining: token_budget - tokens_used.
        summary: The summary that was put into the packet.

    Traces: REQ-010-044
    """

    token_budget: int
    tokens_used: int
    remaining: int
    summary: MemorySummary
