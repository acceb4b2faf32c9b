"""Which rows hold a term, and which rows belong to a name, kept up to date row by row.

Rows stand sorted in compact arrays (6 bytes a posting). Adding or removing one costs a bisection
and a move of memory, so there is nothing to clean up later and nothing stale to filter out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Name = TypeVar("Name", bound=Hashable)

_MOST = 0xFFFF
"""Term frequencies saturate long before this."""


def _sorted_add(rows: array[int], row: int) -> int:
    """Insert `row`; its place."""
    if not rows or rows[-1] < row:
        rows.append(row)
        return len(rows) - 1
    place = bisect_left(rows, row)
    rows.insert(place, row)
    return place


class RowSets(Generic[Name]):
    """A sorted set of rows for each name."""

    def __init__(self) -> None:
        self._rows: dict[Name, array[int]] = {}

    def add(self, name: Name, row: int) -> None:
        """Put `row` into the set of `name`; it must not be there."""
        _sorted_add(self._rows.setdefault(name, array("i")), row)

    def discard(self, name: Name, row: int) -> None:
        """Take `row` out of the set of `name`; it must be there."""
        rows = self._rows[name]
        del rows[bisect_left(rows, row)]
        if not rows:
            del self._rows[name]

    def size(self, name: Name) -> int:
        """Number of rows of `name`."""
        rows = self._rows.get(name)
        return 0 if rows is None else len(rows)

    def rows(self, name: Name) -> NDArray[np.int32]:
        """Rows of `name`, rising; a copy."""
        rows = self._rows.get(name)
        return np.empty(0, np.int32) if rows is None else np.array(rows, np.int32)


class _Posting:
    __slots__ = ("counts", "rows", "term")

    def __init__(self, term: str) -> None:
        self.term = term
        self.rows: array[int] = array("i")
        self.counts: array[int] = array("H")


class Postings:
    """Rows and frequencies of each term.

    Traces: REQ-010-016
    """

    def __init__(self) -> None:
        self._terms: dict[str, _Posting] = {}

    def add(self, row: int, terms: Sequence[str]) -> tuple[str, ...]:
        """Enter the terms of `row`; returns them as shared strings, in the same order."""
        shared: dict[str, str] = {}
        for term, count in Counter(terms).items():
            posting = self._terms.get(term)
            if posting is None:
                posting = self._terms[term] = _Posting(term)
            shared[term] = posting.term
            place = _sorted_add(posting.rows, row)
            posting.counts.insert(place, min(count, _MOST))
        return tuple(shared[term] for term in terms)

    def remove(self, row: int, terms: Sequence[str]) -> None:
        """Take out `row`, which was entered with `terms`."""
        for term in set(terms):
            posting = self._terms[term]
            place = bisect_left(posting.rows, row)
            del posting.rows[place], posting.counts[place]
            if not posting.rows:
                del self._terms[term]

    def get(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Rows (rising) that hold `term`, and how often; copies."""
        posting = self._terms.get(term)
        if posting is None:
            return np.empty(0, np.int32), np.empty(0, np.uint16)
        return np.array(posting.rows, np.int32), np.array(posting.counts, np.uint16)

    def __len__(self) -> int:
        return len(self._terms)
