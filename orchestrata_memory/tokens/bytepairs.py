"""Counting and cutting in the tokens of a byte-pair vocabulary."""

from __future__ import annotations

from typing import Final

import regex

from orchestrata_memory.tokens.characters import well_formed
from orchestrata_memory.tokens.fitting import longest_fitting
from orchestrata_memory.tokens.vocabularies import Vocabulary

_LONGEST_TOKEN: Final = 128
_ANCHOR_REACH: Final = 4096

# Every vocabulary here first splits a text into words; after a letter that white space or a mark
# other than an apostrophe follows, it always splits. No token crosses a split: counts add up.
_SPLIT = regex.compile(r"(?rV1)\p{L}(?=[[\s\p{Po}]--[']])")


class BytePairs:
    """A vocabulary with exact counts and exact cuts.

    Args:
        vocabulary: Where the tokens come from.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def count(self, text: str) -> int:
        """Number of tokens; 0 for an empty text."""
        return len(self._vocabulary.encode_ordinary(well_formed(text)))

    def guess(self, text: str, max_tokens: int) -> int | None:
        """How many characters the first `max_tokens` tokens cover; None when they cover all."""
        head = well_formed(text[: (max_tokens + 1) * _LONGEST_TOKEN])
        tokens = self._vocabulary.encode_ordinary(head)
        if len(tokens) <= max_tokens:
            return None
        covered = self._vocabulary.decode_bytes(tokens[:max_tokens])
        return len(covered.decode("utf-8", "ignore"))

    def truncate(self, text: str, max_tokens: int) -> str:
        """The longest prefix of at most `max_tokens` tokens, cut between characters."""
        if max_tokens <= 0:
            return ""
        guess = self.guess(text, max_tokens)
        if guess is None:
            return text
        prefix = PrefixCounts(self, text, guess)
        return text[: longest_fitting(text, guess, lambda end: prefix.count(end) <= max_tokens)]


class PrefixCounts:
    """Counts of many prefixes of one text that end near each other.

    What lies before the last certain split in front of them is counted once.

    Args:
        pairs: What counts.
        text: The text.
        near: Where the prefixes end, roughly.
    """

    def __init__(self, pairs: BytePairs, text: str, near: int) -> None:
        self._pairs = pairs
        self._text = text
        reach = max(0, near - _ANCHOR_REACH)
        match = _SPLIT.search(text, reach, max(reach, near - 2 * _LONGEST_TOKEN))
        self._split = match.end() if match is not None else 0
        self._before = pairs.count(text[: self._split])

    def count(self, end: int) -> int:
        """Tokens of the prefix that ends at `end`."""
        if end < self._split:
            return self._pairs.count(self._text[:end])
        return self._before + self._pairs.count(self._text[self._split : end])
