"""Candidates for a search: keyword and vector look-up side by side, then their documents.

Filters hold before every cut. A small scope (or a caller who may read little) is scanned exactly;
otherwise the index gives more and more of its nearest until enough of them pass, and when that
gets dearer than a scan, the scan decides. So "exhausted" is said only when it is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from cachetools import LRUCache, TTLCache
from numpy.typing import NDArray

from orchestrata_memory.cold.base import ColdCandidates, ColdHit, ColdQuery, Readable
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row, SearchIndexes
from orchestrata_memory.cold.documents import Documents
from orchestrata_memory.cold.filters import UNFILTERED, Filters, filters_of
from orchestrata_memory.cold.lucene import any_of
from orchestrata_memory.cold.queries import query
from orchestrata_memory.cold.vector_index import VectorIndex
from orchestrata_memory.cold.vectors import VectorReader
from orchestrata_memory.concurrency import side_by_side
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.models import MemoryScope

SCAN_LIMIT = 600
"""Scopes up to this size are scanned exactly."""

_LEAST_WIDTH = 200
"""What an approximate index is asked for at least: 99.8 % of the ten nearest are among that many
(measured at 10,000 memories), and each further hundred costs an embedded graph milliseconds."""

_LEAST_FOUND = 50
"""What is taken of that at least: an index with rounded vectors is off by a few places."""

_SIZES_SECONDS = 10.0
"""How long sizes are remembered: they only pick a way, and each way finds the same."""

_WIDEN = 4
_SLACK = 16
_REMEMBERED = 1_000
_NARROW = ("scope_session_id", "scope_task_id")

_Reached = tuple[MemoryScope, Readable | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    rows: tuple[Row, ...]
    exhausted: bool


_NOTHING = _Found(rows=(), exhausted=True)


class CandidateFinder:
    """Looks candidates up.

    Args:
        connection: The open connection.
        indexes: Names of the search indexes.
        vector_index: Tells when it can be asked.
        documents: Reads what was found.
        dimension: Dimension of every vector.
    """

    def __init__(
        self,
        connection: GraphConnection,
        indexes: SearchIndexes,
        vector_index: VectorIndex,
        documents: Documents,
        *,
        dimension: int,
    ) -> None:
        self._connection = connection
        self._indexes = indexes
        self._vector_index = vector_index
        self._known_total = 0, 0.0
        self._enough: LRUCache[_Reached, int] = LRUCache(_REMEMBERED)
        self._scans: TTLCache[_Reached, str | None] = TTLCache(_REMEMBERED, ttl=_SIZES_SECONDS)
        self._reader = VectorReader(connection, dimension=dimension)
        self._documents = documents

    async def candidates(self, asked: ColdQuery) -> ColdCandidates:
        """See `ColdStore.candidates`.

        Traces: REQ-010-016, REQ-010-017, REQ-010-039
        """
        filters = filters_of(asked.scope, asked.readable)
        vector = self._reader.comparable(asked.vector)
        by_keyword, by_vector = await side_by_side(
            (self._by_keyword(asked, filters), self._by_vector(asked, filters, vector))
        )
        found = _once((*by_keyword.rows, *by_vector.rows))
        return ColdCandidates(
            hits=tuple(await self._documents.hits(found, filters, asked.vector)),
            keyword_exhausted=by_keyword.exhausted,
            vector_exhausted=by_vector.exhausted,
        )

    async def at_slots(
        self, slots: Sequence[str], vector: NDArray[np.float32] | None
    ) -> list[ColdHit]:
        """The memories at the slots."""
        if not slots:
            return []
        rows = await self._connection.read(UNFILTERED.fill("found_by_slot"), {"slots": slots})
        return await self._documents.hits(rows[0][0], UNFILTERED, vector)

    # --- by keyword ----------------------------------------------------------------------
    async def _by_keyword(self, asked: ColdQuery, filters: Filters) -> _Found:
        found = await side_by_side(
            self._by_lucene(asked, filters, text) for text in any_of(asked.terms)
        )
        rows = _once(row for part in found for row in part.rows)
        return _Found(rows=tuple(rows), exhausted=all(part.exhausted for part in found))

    async def _by_lucene(self, asked: ColdQuery, filters: Filters, lucene: str) -> _Found:
        text = filters.fill("found_by_terms")
        named = {**filters.parameters, "index": self._indexes.terms, "lucene": lucene}
        limit = _first_limit(asked)
        while True:
            rows = await self._connection.read(text, {**named, "limit": limit})
            found = _judged(rows[0][0], asked, limit)
            if found is not None:
                return found
            limit *= _WIDEN

    # --- by vector -----------------------------------------------------------------------
    async def _by_vector(
        self, asked: ColdQuery, filters: Filters, vector: list[float] | None
    ) -> _Found:
        if vector is None:
            return _NOTHING
        total = await self._total()
        if total <= SCAN_LIMIT or not self._vector_index.ready:
            return await self._by_scan("found_by_scan", asked, filters, vector)
        reached = asked.scope, asked.readable
        width = max(2 * _first_limit(asked), _LEAST_WIDTH, self._enough.get(reached, 0))
        if width * 2 < total and not any(name in filters.parameters for name in _NARROW):
            found = await self._by_index(asked, filters, vector, width)
            if found is not None:
                return found
        scan = await self._known_scan(reached, filters)
        while scan is None:
            width *= _WIDEN
            if width * 2 >= total:
                scan = "found_by_scan"
            elif (found := await self._by_index(asked, filters, vector, width)) is not None:
                self._enough[reached] = width
                return found
        self._enough[reached] = total
        return await self._by_scan(scan, asked, filters, vector)

    async def _total(self) -> int:
        """How many memories there are; a large number is remembered, as it only picks a way."""
        known, until = self._known_total
        if monotonic() < until:
            return known
        total = await self._count(query("count_memories"), {})
        if total > 2 * SCAN_LIMIT:
            self._known_total = total, monotonic() + _SIZES_SECONDS
        return total

    async def _known_scan(self, reached: _Reached, filters: Filters) -> str | None:
        """As `_scan_for`, remembered."""
        with suppress(KeyError):
            return self._scans[reached]
        scan = self._scans[reached] = await self._scan_for(filters)
        return scan

    async def _scan_for(self, filters: Filters) -> str | None:
        """The scan that suits a small scope or a caller who may read little; None: neither."""
        if filters.is_scoped and await self._is_small(filters.fill("count_scope"), filters):
            return "found_by_scan"
        if filters.is_restricted and await self._is_small(query("count_readable"), filters):
            return "found_by_scan_of_readable"
        return None

    async def _is_small(self, text: str, filters: Filters) -> bool:
        bound = {**filters.parameters, "bound": SCAN_LIMIT + 1}
        return await self._count(text, bound) <= SCAN_LIMIT

    async def _by_scan(
        self, name: str, asked: ColdQuery, filters: Filters, vector: list[float]
    ) -> _Found:
        limit = _first_limit(asked)
        while True:
            rows = await self._reader.read(name, filters, vector, {"limit": limit})
            found = _judged(rows[0][0], asked, limit)
            if found is not None:
                return found
            limit *= _WIDEN

    async def _by_index(
        self, asked: ColdQuery, filters: Filters, vector: list[float], width: int
    ) -> _Found | None:
        """Enough of the `width` nearest, or None when too few of them pass."""
        wanted = max(asked.count, _LEAST_FOUND)
        parameters = {
            **filters.parameters,
            "index": self._indexes.vector,
            "vector": vector,
            "width": width,
            "limit": wanted + len(asked.exclude),
        }
        try:
            rows = await self._connection.read(filters.fill("found_by_vector"), parameters)
        except MemoryUnavailableError:
            self._vector_index.start()
            raise
        found = [row for row in rows[0][0] if row[0] not in asked.exclude]
        if len(found) < asked.count:
            return None
        return _Found(rows=tuple(found[:wanted]), exhausted=False)

    async def _count(self, text: str, parameters: Mapping[str, Any]) -> int:
        rows = await self._connection.read(text, parameters)
        return int(rows[0][0])


def _first_limit(asked: ColdQuery) -> int:
    """One more than asked for, and some for what is excluded."""
    return asked.count + 1 + min(len(asked.exclude), asked.count + _SLACK)


def _once(rows: Iterable[Row]) -> list[Row]:
    """One row of each memory; of two states of one the later row's."""
    return list({row[0]: row for row in rows}.values())


def _judged(rows: Sequence[Row], asked: ColdQuery, limit: int) -> _Found | None:
    """What was found, or None when the excluded keys left too little of a cut answer."""
    found = [row for row in rows if row[0] not in asked.exclude]
    complete = len(rows) < limit
    if not complete and len(found) <= asked.count:
        return None
    exhausted = complete and len(found) <= asked.count
    return _Found(rows=tuple(found[: asked.count]), exhausted=exhausted)
