"""Candidates for a search: keyword and vector look-up side by side, then their records.

Filters hold before every cut. A small scope (or a caller who may read little) is scanned exactly;
otherwise the index gives more and more of its nearest until enough of them pass, and when that
gets dearer than a scan, the scan decides. So "exhausted" is said only when it is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrata_memory.cold.base import ColdCandidates, ColdHit, ColdQuery
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row, SearchIndexes
from orchestrata_memory.cold.filters import Filters, filters_of
from orchestrata_memory.cold.lucene import any_of
from orchestrata_memory.cold.queries import filled, query
from orchestrata_memory.cold.rows import floats, hit_from
from orchestrata_memory.cold.together import side_by_side

SCAN_LIMIT = 1000
"""Scopes up to this size are scanned exactly."""

_WIDEN = 4
_SLACK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    keys: tuple[str, ...]
    exhausted: bool


_NOTHING = _Found(keys=(), exhausted=True)


class CandidateFinder:
    """Looks candidates up.

    Args:
        connection: The open connection.
        indexes: Names of the search indexes.
        dimension: Dimension of every vector.
    """

    def __init__(
        self, connection: GraphConnection, indexes: SearchIndexes, *, dimension: int
    ) -> None:
        self._connection = connection
        self._indexes = indexes
        self._dimension = dimension

    async def candidates(self, asked: ColdQuery) -> ColdCandidates:
        """See `ColdStore.candidates`.

        Traces: REQ-010-016, REQ-010-017, REQ-010-039
        """
        filters = filters_of(asked.scope, asked.readable)
        vector = None if asked.vector is None else floats(asked.vector)
        by_keyword, by_vector = await side_by_side(
            (self._by_keyword(asked, filters), self._by_vector(asked, filters, vector))
        )
        keys = list(dict.fromkeys((*by_keyword.keys, *by_vector.keys)))
        return ColdCandidates(
            hits=tuple(await self.hits(keys, filters, vector)),
            keyword_exhausted=by_keyword.exhausted,
            vector_exhausted=by_vector.exhausted,
        )

    async def hits(
        self, keys: Sequence[str], filters: Filters, vector: list[float] | None
    ) -> list[ColdHit]:
        """The records of the keys that still pass, with their cosines."""
        if not keys:
            return []
        parameters = {**filters.parameters, "keys": keys, **self._vector_parameters(vector)}
        rows = await self._connection.read(filters.fill("hits_by_key"), parameters)
        return [self._hit(row) for row in rows]

    async def at_slots(self, slots: Sequence[str], vector: list[float] | None) -> list[ColdHit]:
        """The memories at the slots."""
        if not slots:
            return []
        parameters = {"slots": slots, **self._vector_parameters(vector)}
        rows = await self._connection.read(filled("hits_by_slot"), parameters)
        return [self._hit(row) for row in rows]

    def _hit(self, row: Row) -> ColdHit:
        similarity = row[2]
        cosine = None if similarity is None else self._connection.dialect.cosine(similarity)
        return hit_from(row, cosine)

    def _vector_parameters(self, vector: list[float] | None) -> dict[str, Any]:
        return {"vector": vector, "dimension": self._dimension}

    async def _by_keyword(self, asked: ColdQuery, filters: Filters) -> _Found:
        queries = any_of(asked.terms)
        if not queries:
            return _NOTHING
        found = await side_by_side(self._by_lucene(asked, filters, text) for text in queries)
        keys = dict.fromkeys(key for part in found for key in part.keys)
        return _Found(keys=tuple(keys), exhausted=all(part.exhausted for part in found))

    async def _by_lucene(self, asked: ColdQuery, filters: Filters, lucene: str) -> _Found:
        parameters = {**filters.parameters, "index": self._indexes.terms, "lucene": lucene}
        text = filters.fill("keys_by_terms")
        return await self._until_enough(asked, text, parameters)

    async def _until_enough(
        self, asked: ColdQuery, text: str, parameters: Mapping[str, Any]
    ) -> _Found:
        """Ask with a growing limit until enough remains without the excluded keys."""
        limit = _first_limit(asked)
        while True:
            rows = await self._connection.read(text, {**parameters, "limit": limit})
            found = _without_excluded(rows, asked)
            if len(rows) < limit:
                return _cut(found, asked.count, complete=True)
            if len(found) > asked.count:
                return _cut(found, asked.count, complete=False)
            limit *= _WIDEN

    async def _by_vector(
        self, asked: ColdQuery, filters: Filters, vector: list[float] | None
    ) -> _Found:
        if vector is None:
            return _NOTHING
        parameters = {**filters.parameters, "vector": vector, "dimension": self._dimension}
        name = await self._scan_for(filters)
        if name is not None:
            return await self._until_enough(asked, filters.fill(name), parameters)
        found = await self._by_index(asked, filters, parameters)
        if found is not None:
            return found
        return await self._until_enough(asked, filters.fill("keys_by_scan"), parameters)

    async def _scan_for(self, filters: Filters) -> str | None:
        """The scan that suits a small scope or a caller who may read little; None: neither."""
        bound = {**filters.parameters, "bound": SCAN_LIMIT + 1}
        name = "count_scope" if filters.is_scoped else "count_memories"
        if await self._count(filters.fill(name), bound) <= SCAN_LIMIT:
            return "keys_by_scan"
        if not filters.is_restricted:
            return None
        if await self._count(query("count_readable"), bound) <= SCAN_LIMIT:
            return "keys_by_scan_of_readable"
        return None

    async def _by_index(
        self, asked: ColdQuery, filters: Filters, parameters: Mapping[str, Any]
    ) -> _Found | None:
        """The nearest by the index; None when a scan is the cheaper way to enough of them."""
        total = await self._count(query("count_memories"), {})
        text = filters.fill("keys_by_vector")
        width = 2 * _first_limit(asked)
        named = {**parameters, "index": self._indexes.vector}
        while width * 2 < total:
            rows = await self._connection.read(text, {**named, "width": width, "limit": width})
            found = _without_excluded(rows, asked)
            if len(found) > asked.count:
                return _cut(found, asked.count, complete=False)
            width *= _WIDEN
        return None

    async def _count(self, text: str, parameters: Mapping[str, Any]) -> int:
        rows = await self._connection.read(text, parameters)
        return int(rows[0][0])


def _first_limit(asked: ColdQuery) -> int:
    """One more than asked for, and some for what is excluded."""
    return asked.count + 1 + min(len(asked.exclude), asked.count + _SLACK)


def _without_excluded(rows: Sequence[Row], asked: ColdQuery) -> list[str]:
    return [row[0] for row in rows if row[0] not in asked.exclude]


def _cut(keys: Sequence[str], count: int, *, complete: bool) -> _Found:
    return _Found(keys=tuple(keys[:count]), exhausted=complete and len(keys) <= count)
