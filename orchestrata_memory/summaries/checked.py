"""Holding a finished summary against the provider's own count, once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, Protocol

from orchestrata_memory.models import MemorySummary

MARGIN_PERCENT: Final = 3
"""What is left free of the budget when a summary that was over is made again."""


class TokenCheck(Protocol):
    """A provider's own token count, over the network."""

    @property
    def name(self) -> str: ...

    async def count(self, text: str, model: str) -> int | None:
        """Tokens of the text, or None when no answer came in time; never raises."""
        ...


async def checked(
    summary: MemorySummary,
    *,
    check: TokenCheck,
    model: str,
    max_tokens: int,
    again: Callable[[int], Awaitable[MemorySummary]],
) -> MemorySummary:
    """The summary if the provider's count is within the budget, else a shorter one.

    Args:
        summary: Made to `max_tokens` by a local counter.
        check: The provider's count; asked once.
        model: The provider's model.
        max_tokens: The budget.
        again: Makes the summary anew to a smaller budget, by the local counter.

    Returns:
        With the provider's count and name where it answered; a shorter one keeps the local
        counter's, because it was not checked again. Without an answer the summary as it is.

    Traces: REQ-010-022, REQ-010-042
    """
    tokens = await check.count(summary.content, model)
    if tokens is None:
        return summary
    if tokens <= max_tokens:
        return replace(summary, token_count=tokens, counter=check.name)
    smaller = summary.token_count * max_tokens * (100 - MARGIN_PERCENT) // (tokens * 100)
    return await again(max(1, smaller))
