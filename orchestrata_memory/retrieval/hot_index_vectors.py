"""Vectors of the hot index: one matrix, scanned exactly while that is fast, else approximately.

Memory of one entry at 384 dimensions: 1,536 bytes of matrix, and beyond `EXACT_ROWS` entries
about 850 bytes of graph (int8 vectors and links). The approximate index only proposes: what it
finds is scored again with the exact vectors.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final

import numpy as np
from usearch.index import Index

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT_ROWS: Final = 20_000
"""Up to so many rows a scan takes a few milliseconds; beyond, the approximate index answers."""

_INLINE_ROWS: Final = 20_000
"""Scans of more rows run on a thread: they take a millisecond or two."""

_CHUNK_ROWS: Final = 256
_FIRST_CAPACITY: Final = 256
_ADD_BATCH: Final = 32
_LEAST_ASKED: Final = 512
_ASKED_A_RESULT: Final = 8
_FOUND_A_RESULT: Final = 2
"""The graph is asked for more than is wanted, and must give twice as much within the filter: its
far neighbours are less reliable than its near ones (measured: recall 0.98 and more)."""

_MOST_ASKED: Final = 8_192
_ROW_BITS: Final = 32
_ROW_MASK: Final = (1 << _ROW_BITS) - 1
_STAMP_MASK: Final = (1 << 31) - 1


class VectorMatrix:
    """Unit vectors by row.

    Attributes:
        dimension: Length of each vector.
        there: Rows that have a vector.
    """

    def __init__(self, dimension: int, *, exact_rows: int = EXACT_ROWS) -> None:
        self.dimension = dimension
        self.there = np.zeros(_FIRST_CAPACITY, np.bool_)
        self._matrix = np.zeros((_FIRST_CAPACITY, dimension), np.float32)
        self._stamps = np.zeros(_FIRST_CAPACITY, np.int64)
        self._stamp = 0
        self._indexed = 0
        self._high = 0
        self._exact_rows = exact_rows
        self._approximate: ApproximateIndex | None = None
        self._indexing: asyncio.Task[None] | None = None

    # --- changes -------------------------------------------------------------------------
    def set(self, row: int, vector: NDArray[np.float32]) -> None:
        """Give `row` a vector."""
        while row >= len(self.there):
            self._grow()
        self._stamp += 1
        self._matrix[row] = vector
        self._stamps[row] = self._stamp
        self.there[row] = True
        self._high = max(self._high, row + 1)

    def clear(self, row: int) -> None:
        """Take the vector of `row` away, if it has one."""
        if row < len(self.there):
            self.there[row] = False
            self._stamps[row] = 0

    def vector(self, row: int) -> NDArray[np.float32] | None:
        """The vector of `row`; a copy."""
        return self._matrix[row].copy() if self.has(row) else None

    def has(self, row: int) -> bool:
        """Whether `row` has a vector."""
        return row < len(self.there) and bool(self.there[row])

    def with_vectors(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Those of the rows that have a vector."""
        rows = rows[rows < len(self.there)]
        return rows[self.there[rows]]

    def without_vectors(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Those of the rows that have none."""
        near = rows < len(self.there)
        lacking = ~near
        lacking[near] = ~self.there[rows[near]]
        return rows[lacking]

    # --- look-ups ------------------------------------------------------------------------
    def cosines(self, rows: NDArray[np.int32], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of each of the rows, which have a vector, with a unit query."""
        return _scan(self._matrix, rows, query)

    async def nearest(
        self, rows: NDArray[np.int32], query: NDArray[np.float32], count: int
    ) -> NDArray[np.int32]:
        """The `count` rows nearest to the query, best first, of `rows` (with vectors, rising).

        Exact for up to the configured number of rows; beyond, at least 95 of 100 of the true ten
        nearest come back, with any filter. The data may change while it is awaited.

        Traces: REQ-010-039, REQ-010-040
        """
        if len(rows) > self._exact_rows and self._approximate is not None:
            near = await self._approximately(self._approximate, rows, query, count)
            if near is not None:
                return near
        matrix = self._matrix
        if len(rows) <= _INLINE_ROWS:
            return _exact(matrix, rows, query, count)
        return await asyncio.to_thread(_exact, matrix, rows, query, count)

    async def _approximately(
        self,
        index: ApproximateIndex,
        rows: NDArray[np.int32],
        query: NDArray[np.float32],
        count: int,
    ) -> NDArray[np.int32] | None:
        """Nearest rows by the graph and, exactly, those not in it yet; None: scan instead."""
        fresh = rows[~index.holds(rows, self._stamps[rows])]
        if len(fresh) > self._exact_rows:
            return None
        mask = np.zeros(len(self.there), np.bool_)
        mask[rows] = True
        matrix, stamps = self._matrix, self._stamps
        asked = max(_LEAST_ASKED, _ASKED_A_RESULT * count * index.size // max(1, len(rows)))
        while asked <= min(_MOST_ASKED, index.size):
            found = await asyncio.to_thread(index.search, query, asked)
            keep = found[index.current(found, stamps)] & _ROW_MASK
            near = keep[mask[keep]].astype(np.int32)
            if len(near) >= _FOUND_A_RESULT * count:
                both = np.concatenate([near, fresh])
                return await asyncio.to_thread(_exact, matrix, both, query, count)
            asked *= 4
        return None

    # --- upkeep --------------------------------------------------------------------------
    def keep_up(self) -> None:
        """Start bringing the approximate index up to date in the background, where one pays."""
        if self._indexing is not None or self._indexed == self._stamp:
            return
        if np.count_nonzero(self.there) > self._exact_rows:
            self._indexing = asyncio.create_task(
                self._index_all(), name="orchestrata-memory vector index"
            )

    async def settle(self) -> None:
        """Wait until the background work has caught up."""
        while self._indexing is not None:
            await asyncio.wait({self._indexing})

    async def close(self) -> None:
        """Stop the background work."""
        if self._indexing is not None:
            self._indexing.cancel()
            await asyncio.wait({self._indexing})

    async def _index_all(self) -> None:
        try:
            index = self._approximate
            if index is None or index.size > 2 * np.count_nonzero(self.there):
                index = ApproximateIndex(self.dimension)  # the old one answers meanwhile
            if self._approximate is None:
                self._approximate = index  # what it lacks is scanned
            while True:
                stamp = self._stamp
                rows = np.flatnonzero(self.there).astype(np.int32)
                rows = rows[~index.holds(rows, self._stamps[rows])]
                if not len(rows):
                    self._indexed = stamp
                    break
                for start in range(0, len(rows), _ADD_BATCH):
                    batch = self.with_vectors(rows[start : start + _ADD_BATCH])
                    stamps, vectors = self._stamps[batch], self._matrix[batch]
                    await asyncio.to_thread(index.add, batch, stamps, vectors)
            self._approximate = index
        finally:
            self._indexing = None

    def _grow(self) -> None:
        more = len(self.there)
        self.there = np.concatenate([self.there, np.zeros(more, np.bool_)])
        self._stamps = np.concatenate([self._stamps, np.zeros(more, np.int64)])
        self._matrix = np.concatenate([self._matrix, np.zeros((more, self.dimension), np.float32)])


class ApproximateIndex:
    """A graph of near neighbours (HNSW) whose keys name a row and the state it was added in.

    A row whose vector changed is added anew under its new stamp; the old node is told apart by
    its stamp and falls with the next rebuild.
    """

    def __init__(self, dimension: int) -> None:
        self._index = Index(
            ndim=dimension, metric="ip", dtype="i8", connectivity=16, expansion_add=128
        )
        self._lock = threading.Lock()
        self._added = np.zeros(_FIRST_CAPACITY, np.int64)

    @property
    def size(self) -> int:
        """Number of nodes, outdated ones included."""
        return len(self._index)

    def holds(self, rows: NDArray[np.int32], stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the rows are in the graph in the state of their stamps."""
        inside = rows < len(self._added)
        held = np.zeros(len(rows), np.bool_)
        held[inside] = self._added[rows[inside]] == stamps[inside]
        return held

    def current(self, keys: NDArray[np.int64], stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which keys name the present state of their row."""
        rows = keys & _ROW_MASK
        inside = rows < len(stamps)
        valid: NDArray[np.bool_] = inside.copy()
        valid[inside] = (stamps[rows[inside]] & _STAMP_MASK) == keys[inside] >> _ROW_BITS
        return valid

    def add(
        self, rows: NDArray[np.int32], stamps: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> None:
        """Add rows in the state of their stamps; blocking, thread-safe."""
        if not len(rows):
            return
        keys = (((stamps & _STAMP_MASK) << _ROW_BITS) | rows.astype(np.int64)).astype(np.uint64)
        with self._lock:
            self._index.add(keys, vectors, threads=1)
            top = int(rows.max()) + 1
            if top > len(self._added):
                more = np.zeros(max(top, 2 * len(self._added)) - len(self._added), np.int64)
                self._added = np.concatenate([self._added, more])
            self._added[rows] = stamps

    def search(self, query: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Keys of the nearest nodes; blocking, thread-safe."""
        with self._lock:
            keys = self._index.search(query, count, threads=1).keys
        return np.asarray(keys).astype(np.int64)


def _scan(
    matrix: NDArray[np.float32], rows: NDArray[np.int32], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Cosines of the rows, in chunks that stay in the processor's cache."""
    cosines = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = rows[start : start + _CHUNK_ROWS]
        side_by_side = bool((np.diff(chunk) == 1).all())  # read in place, others are gathered
        block = matrix[chunk[0] : chunk[-1] + 1] if side_by_side else matrix[chunk]
        # not `@`: from about 1,000 rows on BLAS wakes other threads, which costs eight times more
        np.einsum("ij,j->i", block, query, out=cosines[start : start + len(chunk)])
    return np.clip(cosines, -1.0, 1.0)


def _exact(
    matrix: NDArray[np.float32], rows: NDArray[np.int32], query: NDArray[np.float32], count: int
) -> NDArray[np.int32]:
    """The `count` nearest of the rows, best first."""
    cosines = _scan(matrix, rows, query)
    if len(rows) > count:
        chosen = np.argpartition(cosines, len(rows) - count)[-count:]
        rows, cosines = rows[chosen], cosines[chosen]
    return rows[np.argsort(-cosines, kind="stable")]
