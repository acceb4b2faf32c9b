"""A pool of passages as rows of arrays: candidates first, then their context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.retrieval.base import Passage, Pool
from orchestrata_memory.retrieval.weights import CONTEXT_OFFSETS

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class PoolView:
    """Rows in an order that does not depend on the pool's.

    Attributes:
        passages: Candidates by key, then the rest of the context by slot.
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
        candidates = sorted(pool.candidates, key=lambda passage: passage.key)
        keys = {passage.key for passage in candidates}
        others = [pool.context[slot] for slot in sorted(pool.context)]
        passages = (*candidates, *(other for other in others if other.key not in keys))
        rows = {passage.slot: row for row, passage in enumerate(passages) if passage.slot[2] > 0}
        nothing = len(passages)
        neighbours = {
            offset: _rows_at(candidates, offset, rows, nothing) for offset in CONTEXT_OFFSETS
        }
        cosines = np.array(
            [np.nan if passage.cosine is None else passage.cosine for passage in passages],
            dtype=np.float64,
        )
        following = _rows_at(passages, 1, rows, nothing)
        return cls(passages, len(candidates), neighbours, following, cosines)

    def of_candidates(self, values: Floats) -> Floats:
        """The candidates' part of an array by row."""
        return values[: self.candidates]


def _rows_at(
    passages: Sequence[Passage], offset: int, rows: dict[tuple[str, str, int], int], nothing: int
) -> Rows:
    """Rows of the passages at an offset in the same stream."""
    found = [
        rows.get((slot[0], slot[1], slot[2] + offset), nothing) if slot[2] > 0 else nothing
        for slot in (passage.slot for passage in passages)
    ]
    return np.array(found, dtype=np.intp)
