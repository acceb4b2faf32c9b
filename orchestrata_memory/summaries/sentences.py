"""Sentences of a text in any script, with the white space in front of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

LONGEST_SENTENCE: Final = 500
"""Characters of one sentence; longer ones (logs, tables, missing stops) are cut at white space."""

_CLOSING = r"[\"'\p{Pe}\p{Pf}]*"
_BORDER = regex.compile(
    rf"""
    [.!?…]+{_CLOSING}(?=\s)          # a stop, then white space
    | [。！？｡]+{_CLOSING}            # full-width stops need none
    | (?=\n)                         # a line's end
    """,  # noqa: RUF001 - full-width stops are meant
    regex.VERBOSE,
)
_ABBREVIATION = regex.compile(
    r"""(?:^|[\s(])(?:
        \p{Lu}                       # an initial
        | e\.g | i\.e | z\.B | d\.h | a\.m | p\.m | u\.s
        | mr | mrs | ms | dr | prof | st | vs | etc | cf | ca | approx | no | nr | fig | bzw
    )\.$""",
    regex.VERBOSE | regex.IGNORECASE,
)
_SPACE = regex.compile(r"\s+")
_BLANK_LINES = regex.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a text.

    Attributes:
        text: Without white space around it.
        gap: The white space in front of it, blank lines left out; empty for the first.
    """

    text: str
    gap: str


def split(text: str) -> list[Sentence]:
    """The sentences of a text, in order; joined with their gaps they give it back.

    Only the white space around the text and blank lines inside it are lost.
    """
    sentences: list[Sentence] = []
    end = 0
    for start, stop in _spans(text):
        gap = _BLANK_LINES.sub("\n", text[end:start]) if sentences else ""
        sentences.append(Sentence(text[start:stop], gap))
        end = stop
    return sentences


def _spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = _skip_space(text, 0)
    for match in _BORDER.finditer(text):
        if match.end() <= start or not _ends_sentence(text, start, match):
            continue
        spans.extend(_pieces(text, start, match.end()))
        start = _skip_space(text, match.end())
    stop = len(text.rstrip())
    if start < stop:
        spans.extend(_pieces(text, start, stop))
    return spans


def _ends_sentence(text: str, start: int, match: regex.Match[str]) -> bool:
    if not match[0].startswith("."):
        return True
    following = _SPACE.match(text, match.end())
    after = text[following.end() : following.end() + 1] if following else ""
    if after.islower():
        return False
    return _ABBREVIATION.search(text[max(start, match.end() - 12) : match.end()]) is None


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The span, in pieces of at most `LONGEST_SENTENCE` where white space allows it."""
    stop = start + len(text[start:end].rstrip())
    pieces: list[tuple[int, int]] = []
    while stop - start > LONGEST_SENTENCE:
        cut = _last_space(text, start, start + LONGEST_SENTENCE)
        if cut is None:
            cut = start + LONGEST_SENTENCE
        pieces.append((start, cut))
        start = _skip_space(text, cut)
    if start < stop:
        pieces.append((start, stop))
    return pieces


def _last_space(text: str, start: int, end: int) -> int | None:
    """The last white space that leaves at least half of the room used, or None."""
    for position in range(end, start + (end - start) // 2, -1):
        if text[position].isspace():
            return position
    return None


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match is not None else position
