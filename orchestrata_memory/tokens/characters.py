"""Characters as a reader sees them: where a text may be cut."""

from __future__ import annotations

from typing import Final

import regex

LONGEST_CLUSTER: Final = 64
"""Code points a cluster may have; a longer one (marks piled up without end) may be cut inside."""

_CLUSTER = regex.compile(r"\X")
# Between two plain ASCII characters there is a cluster boundary whatever stands around them.
_PLAIN_PAIR = regex.compile(r"(?r)[ -~](?=[ -~])")
_SURROGATE = regex.compile(r"[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate: same length, encodable as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def boundaries(text: str, start: int, end: int) -> list[int]:
    """Positions from `start` to `end`, both inclusive, where the text may be cut; rising.

    The beginning and the end of the text always may.
    """
    anchor = _certain_boundary(text, start)
    found: list[int] = []
    position = anchor
    while position <= end:
        if position >= start:
            found.append(position)
        if position >= len(text):
            break
        position = _next(text, position)
    return found


def boundary_at_or_before(text: str, position: int) -> int:
    """The last place up to `position` where the text may be cut."""
    if position >= len(text):
        return len(text)
    return boundaries(text, _certain_boundary(text, position), position)[-1]


def _next(text: str, position: int) -> int:
    match = _CLUSTER.match(text, position, min(len(text), position + LONGEST_CLUSTER + 1))
    if match is None or match.end() == position:
        return position + 1
    if match.end() - position > LONGEST_CLUSTER:
        return position + LONGEST_CLUSTER
    return match.end()


def _certain_boundary(text: str, position: int) -> int:
    """A boundary at or before `position` that is found without reading from the beginning."""
    if position <= 0:
        return 0
    match = _PLAIN_PAIR.search(text, 0, min(position + 1, len(text)))
    return match.end() if match is not None else 0
