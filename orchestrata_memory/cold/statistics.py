"""Statistics of what one caller may read in one scope.

The number and the mean length of the memories need a walk over all of them, and how often a
common term occurs one over all that hold it. So they are kept for a few seconds and forgotten with
every write of this process: exact within a process, at most `FRESH_SECONDS` behind another one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from time import monotonic

from orchestrata_memory.cold.base import Readable, TermStatistics
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row, SearchIndexes
from orchestrata_memory.cold.filters import Filters, filters_of
from orchestrata_memory.cold.lucene import quoted
from orchestrata_memory.concurrency import together
from orchestrata_memory.models import MemoryScope

FRESH_SECONDS = 5.0
_KEPT = 256
_TERMS_KEPT = 20_000

_Scope = tuple[MemoryScope, Readable | None]
_Size = tuple[int, float]


class Statistics:
    """Counts documents and terms.

    Args:
        connection: The open connection.
        indexes: Names of the search indexes.
    """

    def __init__(self, connection: GraphConnection, indexes: SearchIndexes) -> None:
        self._connection = connection
        self._indexes = indexes
        self._sizes: OrderedDict[_Scope, tuple[float, _Size]] = OrderedDict()
        self._counts: dict[tuple[_Scope, str], tuple[float, int]] = {}
        self._writes = 0

    def forget(self) -> None:
        """The graph changed."""
        self._writes += 1
        self._sizes.clear()
        self._counts.clear()

    async def of(
        self, terms: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> TermStatistics:
        """See `ColdStore.statistics`."""
        filters = filters_of(scope, readable)
        known = self._known((scope, readable))
        if known is None:
            rows, size = await together(
                self._frequencies(terms, (scope, readable), filters),
                self._walk((scope, readable), filters),
            )
            documents, average = size
        else:
            rows = await self._frequencies(terms, (scope, readable), filters)
            documents, average = known
        counted = {row[0]: row[1] for row in rows}
        return TermStatistics(
            documents=max(documents, *counted.values(), 0) if counted else documents,
            average_length=average,
            frequencies=dict.fromkeys(terms, 0) | counted,
        )

    def _known(self, asked: _Scope) -> _Size | None:
        entry = self._sizes.get(asked)
        if entry is None or monotonic() - entry[0] > FRESH_SECONDS:
            return None
        return entry[1]

    async def _walk(self, asked: _Scope, filters: Filters) -> _Size:
        writes, began = self._writes, monotonic()
        rows = await self._connection.read(filters.fill("scope_statistics"), filters.parameters)
        documents, average = rows[0]
        size = int(documents), float(average or 0.0)
        if writes == self._writes:
            self._sizes[asked] = (began, size)
            self._sizes.move_to_end(asked)
            while len(self._sizes) > _KEPT:
                self._sizes.popitem(last=False)
        return size

    async def _frequencies(
        self, terms: Sequence[str], scope: _Scope, filters: Filters
    ) -> list[Row]:
        writes, began = self._writes, monotonic()
        known: list[Row] = []
        asked: list[dict[str, str]] = []
        for term in dict.fromkeys(terms):
            kept = self._counts.get((scope, term))
            if kept is not None and began - kept[0] <= FRESH_SECONDS:
                known.append([term, kept[1]])
            elif term.strip():
                asked.append({"text": term, "lucene": quoted(term)})
        if not asked:
            return known
        parameters = {**filters.parameters, "index": self._indexes.terms, "terms": asked}
        rows = await self._connection.read(filters.fill("term_frequencies"), parameters)
        if writes == self._writes:
            self._keep(scope, asked, rows, began)
        return known + rows

    def _keep(
        self, scope: _Scope, asked: Sequence[dict[str, str]], rows: Sequence[Row], began: float
    ) -> None:
        """Keep the counts; a term without a row occurs nowhere."""
        if len(self._counts) > _TERMS_KEPT:
            self._counts.clear()
        found = {row[0]: row[1] for row in rows}
        for term in asked:
            self._counts[scope, term["text"]] = began, found.get(term["text"], 0)
