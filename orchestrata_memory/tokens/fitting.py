"""The longest prefix that fits, where a count does not simply grow with the text.

A longer prefix can have fewer tokens than a shorter one (``ab`` may be one token where ``a`` and
a broken-off half of the next are two), so neither bisection nor cutting the list of tokens finds
the longest. Both land near it, though: from such a guess every boundary in a window ahead is
tried, the farthest first, then those behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from orchestrata_memory.tokens.characters import boundaries

AHEAD: Final = 96
"""Characters ahead of the guess that are tried; a vocabulary's words are shorter than that."""

_BEHIND: Final = 96


def longest_fitting(text: str, guess: int, fits: Callable[[int], bool]) -> int:
    """The farthest boundary near `guess` up to which the text fits; 0 when none does.

    Args:
        text: The whole text.
        guess: A position near the answer.
        fits: Whether the prefix of that length fits; true for 0.
    """
    start = max(0, guess - _BEHIND)
    for position in reversed(boundaries(text, start, min(len(text), guess + AHEAD))):
        if fits(position):
            return position
    while start > 0:
        end, start = start, max(0, start - 2 * (guess - start))
        for position in reversed(boundaries(text, start, end)):
            if fits(position):
                return position
    return 0
