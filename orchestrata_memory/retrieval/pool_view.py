"""A pool of passages as rows of arrays: candidates first, then their context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.retrieval.base import Passage, Pool
from orchestrata_memory.retrieval.weights import CONTEXT_OFFSETS

_KEY: Final = attrgetter("key")

_STREAM_LENGTH: Final = 2**40
"""More than any stream holds."""

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class PoolView:
    """Rows in an order that does not depend on the pool's.

    Attributes:
        passages: Candidates by key, then the rest of the context by key.
        candidates: How many rows are candidates.
        neighbours: Offset to, for each candidate, its neighbour's row; the row after the last
            one where there is none, so that arrays get one empty row at their end.
        cosines: By row; NaN where unknown.
    """

    passages: tuple[Passage, ...]
    candidates: int
    neighbours: dict[int, Rows]
    following: Rows
    cosines: Floats

    @classmethod
    def of(cls, pool: Pool) -> PoolView:
        """The view of a pool."""
        candidates = sorted(pool.candidates, key=_KEY)
        keys = set(map(_KEY, candidates))
        others = [other for other in pool.context.values() if other.key not in keys]
        passages = (*candidates, *sorted(others, key=_KEY))
        places = _places(passages)
        by_offset = _rows_at(places, (*CONTEXT_OFFSETS, 1))
        neighbours = {
            offset: by_offset[index, : len(candidates)]
            for index, offset in enumerate(CONTEXT_OFFSETS)
        }
        known = pool.cosines
        cosines = np.array([known.get(passage.key, np.nan) for passage in passages], np.float64)
        return cls(passages, len(candidates), neighbours, by_offset[-1], cosines)

    def of_candidates(self, values: Floats) -> Floats:
        """The candidates' part of an array by row."""
        return values[: self.candidates]


def _places(passages: Sequence[Passage]) -> NDArray[np.int64]:
    """One number for each slot, neighbours next to each other; streams lie far apart."""
    streams: dict[tuple[str, str], int] = {}
    numbers, positions = [], []
    for passage in passages:
        session, volk, position = passage.slot
        # a passage without a position is a stream of its own
        stream = (session, volk) if position > 0 else ("", passage.key)
        numbers.append(streams.setdefault(stream, len(streams)))
        positions.append(position)
    places: NDArray[np.int64] = np.array(numbers, dtype=np.int64) * _STREAM_LENGTH
    return places + np.array(positions, dtype=np.int64)


def _rows_at(places: NDArray[np.int64], offsets: Sequence[int]) -> Rows:
    """By offset and row, the row at that offset in the same stream, or the row after the last."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    wanted = places[None, :] + np.array(offsets, dtype=np.int64)[:, None]
    found = np.minimum(np.searchsorted(ordered, wanted), len(places) - 1)
    return np.where(ordered[found] == wanted, order[found], len(places)).astype(np.intp)
