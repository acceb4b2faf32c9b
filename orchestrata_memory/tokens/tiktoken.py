"""Counting in the tokens of OpenAI's models."""

from __future__ import annotations

from orchestrata_memory.tokens.bytepairs import BytePairs
from orchestrata_memory.tokens.vocabularies import DEFAULT_ENCODING, vocabulary_for


class TiktokenCounter:
    """Exact counts in a tiktoken encoding, offline.

    An encoding whose vocabulary is not on the machine is replaced by cl100k_base, and the name
    says so: ``tiktoken:cl100k_base (for o200k_base)``.

    Args:
        encoding: Name of the encoding.

    Raises:
        MemoryConfigurationError: No vocabulary at all is on the machine.

    Traces: REQ-010-041
    """

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        used, vocabulary = vocabulary_for(encoding)
        self.name = f"tiktoken:{used}" + ("" if used == encoding else f" (for {encoding})")
        self._pairs = BytePairs(vocabulary)

    def count(self, text: str) -> int:
        """Number of tokens; 0 for an empty text."""
        return self._pairs.count(text)

    def truncate(self, text: str, max_tokens: int) -> str:
        """The longest prefix of at most `max_tokens` tokens, cut between characters."""
        return self._pairs.truncate(text, max_tokens)
