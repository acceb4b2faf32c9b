"""The end of a summary: the last sentence is cut where that fills the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import regex

from orchestrata_memory.summaries.layout import Layout, Piece
from orchestrata_memory.summaries.packing import Packer
from orchestrata_memory.tokens.base import ITokenCounter
from orchestrata_memory.tokens.characters import LONGEST_CLUSTER

CANDIDATES: Final = 48
"""Sentences that may be tried for the end."""

FULL_PERCENT: Final = 95
"""A budget is full from here on; then the summary ends with a whole sentence."""

_LAST_WORD = regex.compile(r"\s+\S*$")
_VISIBLE = regex.compile(r"[^\s\p{C}\p{M}]")


def is_full(tokens: int, max_tokens: int) -> bool:
    """Whether a budget is used as far as a summary has to."""
    return tokens * 100 >= max_tokens * FULL_PERCENT


def fill_the_end(
    packer: Packer,
    order: Sequence[int],
    *,
    counter: ITokenCounter,
    layout: Layout,
    settle: bool,
) -> bool:
    """End with a part of a sentence, if the budget is not full and there is one to cut.

    A cut shows at least one character; it falls between words where that still fills the budget.

    Args:
        packer: What was packed.
        order: In which order the sources are wanted.
        counter: What counts.
        layout: How it reads.
        settle: Take the one that comes nearest when none fills the budget.

    Returns:
        Whether the budget is full.
    """
    if is_full(packer.tokens, packer.max_tokens):
        return True
    nearest: tuple[int, Piece] | None = None
    for candidate in _candidates(packer, order):
        for piece in (candidate, layout.plain(candidate)):
            cut = _cut(packer.text, piece, counter, packer.max_tokens)
            if cut is not None and (nearest is None or cut[0] > nearest[0]):
                nearest = cut
            if nearest is not None and is_full(nearest[0], packer.max_tokens):
                packer.end_with(nearest[1])
                return True
    if settle and nearest is not None and nearest[0] > packer.tokens:
        packer.end_with(nearest[1])
    return False


def _candidates(packer: Packer, order: Sequence[int]) -> Iterator[Piece]:
    """What was turned away, then what comes next, each as it would follow now."""
    yielded = 0
    first = dict.fromkeys(piece.source for piece in packer.turned_away)
    for source in dict.fromkeys((*first, *order)):
        piece = packer.next_piece(source)
        if piece is None:
            continue
        yield piece
        yielded += 1
        if yielded == CANDIDATES:
            return


def _cut(
    text: str, piece: Piece, counter: ITokenCounter, max_tokens: int
) -> tuple[int, Piece] | None:
    """As much of the piece as fits behind the text, with the tokens of both; None: nothing."""
    lead = piece.lead if text else piece.lead.lstrip("\n")
    start = text + lead
    cut = counter.truncate(start + piece.text, max_tokens)
    part = cut[len(start) :] if cut.startswith(start) else ""
    best: tuple[int, Piece] | None = None
    for ending in _endings(piece.text, part):
        if not _VISIBLE.search(ending):
            continue
        tokens = counter.count(start + ending)
        if tokens <= max_tokens and (best is None or tokens > best[0]):
            best = tokens, Piece(piece.source, lead, ending, piece.day)
            if is_full(tokens, max_tokens):
                break
    return best


def _endings(text: str, part: str) -> Iterator[str]:
    """Ways to end with about as much of the text as `part`, the nicest first.

    The last ones go on into the character behind the part: a family of four is one character of
    twenty tokens, and a budget must be used all the same.
    """
    if part == text:
        yield part
        return
    words = _LAST_WORD.sub("", part)
    if words != part:
        yield f"{words} …"
        yield f"{words}…"
    yield f"{part.rstrip()}…"
    yield part.rstrip()
    yield part
    for end in range(len(part) + 1, min(len(text), len(part) + LONGEST_CLUSTER)):
        yield text[:end]
