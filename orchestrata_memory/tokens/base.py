"""The token counters' contract."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ITokenCounter(Protocol):
    """Counts and cuts text in a provider's tokens. Local, never blocks on a network.

    Traces: REQ-010-041
    """

    @property
    def name(self) -> str:
        """What counts, such as ``tiktoken:cl100k_base``, ``anthropic:estimate`` or ``words``."""
        ...

    def count(self, text: str) -> int:
        """Number of tokens; 0 for an empty text."""
        ...

    def truncate(self, text: str, max_tokens: int) -> str:
        """The longest prefix of `text` of at most `max_tokens` tokens, cut between characters."""
        ...
