"""Counting for Anthropic's models: an estimate on the machine, and the provider's own count.

Anthropic publishes no vocabulary. Measured by others through its counting endpoint, English
prose takes up to 1.55 times the tokens of cl100k_base with the newest models (about 3.1
characters a token), code up to 1.5 times, other scripts about as many as cl100k_base, runs of one
letter up to one token for 2.7 letters. The estimate is the higher of 1.6 times cl100k_base and
one token for 2.6 visible characters, so it is seldom too low; for older models it is a third too
high or so, which leaves budget unused but never exceeds it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import regex

from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.tokens.bytepairs import BytePairs, PrefixCounts
from orchestrata_memory.tokens.fitting import longest_fitting
from orchestrata_memory.tokens.vocabularies import DEFAULT_ENCODING, vocabulary_for

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_logger = logging.getLogger(__name__)

# In tenths, so that the arithmetic is exact.
_TENTHS_PER_TOKEN: Final = 16
_TENTHS_OF_CHARACTERS: Final = 26
_NEAR: Final = 1024
_VISIBLE = regex.compile(r"\S+")


class AnthropicCounter:
    """A local estimate that is meant not to be too low; see the module for how it is made.

    Traces: REQ-010-041
    """

    name = "anthropic:estimate"

    def __init__(self) -> None:
        _, vocabulary = vocabulary_for(DEFAULT_ENCODING)
        self._pairs = BytePairs(vocabulary)

    def count(self, text: str) -> int:
        """Estimated number of tokens; 0 for an empty text."""
        return _estimate(self._pairs.count(text), _visible(text))

    def truncate(self, text: str, max_tokens: int) -> str:
        """The longest prefix of at most `max_tokens` estimated tokens, cut between characters."""
        if max_tokens <= 0:
            return ""
        by_tokens = self._pairs.guess(text, max_tokens * 10 // _TENTHS_PER_TOKEN)
        by_letters = _position_of_visible(text, max_tokens * _TENTHS_OF_CHARACTERS // 10)
        guess = min(len(text) if by_tokens is None else by_tokens, by_letters)
        prefix = PrefixCounts(self._pairs, text, guess)
        near = max(0, guess - _NEAR)
        visible_before = _visible(text[:near])

        def fits(end: int) -> bool:
            visible = (
                visible_before + _visible(text[near:end]) if end >= near else _visible(text[:end])
            )
            return _estimate(prefix.count(end), visible) <= max_tokens

        return text[: longest_fitting(text, guess, fits)]


class AnthropicTokenCheck:
    """Asks Anthropic how many tokens a finished text has. Never used while packing.

    Args:
        api_key: The key.
        deadline_seconds: How long one answer may take.
        base_url: Another address of the service; None: the usual one.

    Raises:
        MemoryConfigurationError: The package ``anthropic`` is not installed.
    """

    name = "anthropic:count_tokens"

    def __init__(
        self, api_key: str, *, deadline_seconds: float = 5.0, base_url: str | None = None
    ) -> None:
        self._client = anthropic_client(api_key, base_url)
        self._deadline = deadline_seconds

    async def count(self, text: str, model: str) -> int | None:
        """Tokens of `text` as a message to `model`, or None when no answer came in time.

        The message's own wrapping, a few tokens, is included.
        """
        if not text:
            return 0
        try:
            async with asyncio.timeout(self._deadline):
                answer = await self._client.messages.count_tokens(
                    model=model, messages=[{"role": "user", "content": text}]
                )
        except Exception as error:  # noqa: BLE001 - the client lets through what a bad answer causes
            _logger.warning("the provider did not count: %s", type(error).__name__)
            return None
        tokens: object = answer.input_tokens  # the client does not check what it was sent
        return tokens if isinstance(tokens, int) else None

    async def close(self) -> None:
        await self._client.close()


def anthropic_client(api_key: str, base_url: str | None = None) -> AsyncAnthropic:
    """A client without retries of its own: deadlines are the caller's.

    Raises:
        MemoryConfigurationError: The package ``anthropic`` is not installed.
    """
    try:
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MemoryConfigurationError(
            "summary.anthropic_api_key is set, but the package anthropic is not installed: "
            "install orchestrata-memory[anthropic]"
        ) from error
    return AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0)


def _estimate(tokens: int, visible: int) -> int:
    by_tokens = -(-tokens * _TENTHS_PER_TOKEN // 10)
    by_letters = -(-visible * 10 // _TENTHS_OF_CHARACTERS)
    return max(by_tokens, by_letters)


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _position_of_visible(text: str, wanted: int) -> int:
    """Where the first `wanted` visible characters end; the end when there are fewer."""
    left = wanted
    for match in _VISIBLE.finditer(text):
        length = match.end() - match.start()
        if length > left:
            return match.start() + left
        left -= length
    return len(text)
