"""Statistics of what one caller may read in one scope, exact at the moment of asking."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrata_memory.cold.base import Readable, TermStatistics
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row, SearchIndexes
from orchestrata_memory.cold.filters import Filters, filters_of
from orchestrata_memory.cold.lucene import quoted
from orchestrata_memory.cold.together import side_by_side
from orchestrata_memory.models import MemoryScope


async def term_statistics(
    connection: GraphConnection,
    indexes: SearchIndexes,
    terms: Sequence[str],
    scope: MemoryScope,
    readable: Readable | None,
) -> TermStatistics:
    """See `ColdStore.statistics`; the two parts are asked for side by side."""
    filters = filters_of(scope, readable)
    size, counts = await side_by_side(
        (
            connection.read(filters.fill("scope_statistics"), filters.parameters),
            _frequencies(connection, indexes, terms, filters),
        )
    )
    documents, average = size[0]
    return TermStatistics(
        documents=documents,
        average_length=float(average or 0.0),
        frequencies=dict.fromkeys(terms, 0) | {row[0]: row[1] for row in counts},
    )


async def _frequencies(
    connection: GraphConnection, indexes: SearchIndexes, terms: Sequence[str], filters: Filters
) -> list[Row]:
    distinct = [term for term in dict.fromkeys(terms) if term.strip()]
    if not distinct:
        return []
    asked = [{"text": term, "lucene": quoted(term)} for term in distinct]
    parameters = {**filters.parameters, "index": indexes.terms, "terms": asked}
    return await connection.read(filters.fill("term_frequencies"), parameters)
