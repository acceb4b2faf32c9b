"""Noticing that something was said already."""

from __future__ import annotations

from typing import Final

import regex

_WORD = regex.compile(r"\w+")

FILLERS: Final = frozenset(
    """a an the is are am was were be been being has have had do does did will would also just
    then so very really that this it its""".split()  # noqa: SIM905 - reads as a list of words
)
"""Words that alone make no new statement. No negation, no direction, no person."""


def words_of(sentence: str) -> frozenset[str]:
    """Its distinct words, case folded."""
    return frozenset(_WORD.findall(sentence.casefold()))


class Said:
    """The sentences said so far.

    A sentence repeats an earlier one when all its words, fillers aside, stand in that one too.
    A single other word, number or negation makes it a statement of its own.
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._sentences: list[frozenset[str]] = []
        self._holders: dict[str, list[int]] = {}

    def is_same(self, sentence: str) -> bool:
        """Whether this very sentence was said, letter case and punctuation aside."""
        return _plain(sentence) in self._texts

    def is_repetition(self, sentence: str) -> bool:
        """Whether an earlier sentence says all that this one says."""
        if self.is_same(sentence):
            return True
        telling = words_of(sentence) - FILLERS
        if not telling:
            return False
        holders = [self._holders.get(word) for word in telling]
        if any(held is None for held in holders):
            return False
        rarest = min((held for held in holders if held is not None), key=len)
        return any(telling <= self._sentences[index] for index in rarest)

    def add(self, sentence: str) -> None:
        """Remember a sentence."""
        self._texts.add(_plain(sentence))
        words = words_of(sentence)
        for word in words:
            self._holders.setdefault(word, []).append(len(self._sentences))
        self._sentences.append(words)

    def take_back(self, sentence: str) -> None:
        """Forget a sentence, which must be the one added last."""
        self._texts.discard(_plain(sentence))
        for word in self._sentences.pop():
            self._holders[word].pop()
            if not self._holders[word]:
                del self._holders[word]


def _plain(sentence: str) -> str:
    words = _WORD.findall(sentence.casefold())
    return " ".join(words) if words else sentence.strip()
