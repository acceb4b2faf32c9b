"""Cuts long text at the best border that fits: sentence, else word, else character."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex

# After the end of a sentence and what closes it; scripts without blanks end one without a blank.
# By the classes of Unicode: sentence terminals, closing quotes and brackets.
_SENTENCE: Final = regex.compile(
    r"""\p{Sentence_Terminal}["'\p{Pe}\p{Pf}]*(?=\s)|[\u3002\uff01\uff1f\uff61][\p{Pe}\p{Pf}]*|\n\s*\n"""
)
_WORD: Final = regex.compile(r"\s+")
_CHARACTER: Final = regex.compile(r"\X")
_LEAST_FILLED: Final = 0.25


def split_text(text: str, limit_bytes: int) -> Iterator[str]:
    """Parts of `text` in order, each within `limit_bytes` of UTF-8, without outer blanks.

    Nothing but blanks at the cuts is lost.

    Args:
        text: Any text.
        limit_bytes: At least 4, so that any character fits.
    """
    position = 0
    while position < len(text):
        window = _fitting(text, position, limit_bytes)
        end = position + len(window)
        if end < len(text):
            end = position + _cut(window)
        part = text[position:end].strip()
        if part:
            yield part
        position = end


def _fitting(text: str, position: int, limit_bytes: int) -> str:
    # A character has at least one byte, so more characters than bytes never fit.
    return text[position : position + limit_bytes].encode()[:limit_bytes].decode(errors="ignore")


def _cut(window: str) -> int:
    """Where to end the part that begins the window; more text follows it."""
    least = int(len(window) * _LEAST_FILLED)
    for border in (_SENTENCE, _WORD):
        ends = [match.end() for match in border.finditer(window) if match.end() > least]
        if ends:
            return ends[-1]
    starts = [match.start() for match in _CHARACTER.finditer(window)]
    # The last character may go on behind the window (an accent, a joined emoji): leave it whole.
    return starts[-1] or len(window)
