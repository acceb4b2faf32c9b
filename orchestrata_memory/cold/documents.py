"""From what a look-up found to documents: those that were read before are not sent again.

A look-up answers with the state of what it found: key, version, time of change and model of the
vectors. Under these a document never changes, so what was read once may stand for it; what is
found, readable and current is the graph's answer each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from orchestrata_memory.cold.base import ColdDocument, ColdHit
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row
from orchestrata_memory.cold.filters import Filters
from orchestrata_memory.cold.rows import document_from, is_whole
from orchestrata_memory.cold.vectors import VectorReader

MOST: Final = 20_000
BYTES: Final = 64 << 20
LONGEST: Final = 16 << 10
"""A larger document is not kept: to read it is dear for other reasons."""

_OVERHEAD: Final = 1_500
"""Bytes of a document besides its texts and vectors, roughly."""

State = tuple[Any, ...]
"""Version, time of change, model."""


class DocumentCache:
    """The documents read last, at most `MOST` and `BYTES` of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[State, ColdDocument, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: str, state: State) -> ColdDocument | None:
        """The document in that very state."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != state:
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def keep(self, state: State, document: ColdDocument) -> None:
        """Keep a document in place of an older state of it."""
        key, size = document.record.key, _size(document)
        self._drop(self._kept.pop(key, None))
        if size > LONGEST:
            return
        self._kept[key] = state, document, size
        self._bytes += size
        while self._bytes > BYTES or len(self._kept) > MOST:
            self._drop(self._kept.popitem(last=False)[1])

    def _drop(self, kept: tuple[State, ColdDocument, int] | None) -> None:
        if kept is not None:
            self._bytes -= kept[2]


class Documents:
    """Reads documents.

    Args:
        connection: The open connection.
        reader: Reads vectors safely.
    """

    def __init__(self, connection: GraphConnection, reader: VectorReader) -> None:
        self._connection = connection
        self._reader = reader
        self._cache = DocumentCache()

    async def hits(
        self, found: Iterable[Row], filters: Filters, vector: list[float] | None
    ) -> list[ColdHit]:
        """Hits of what was found, rows of ``fragment_found.cypher``; what is gone is left out."""
        hits: list[ColdHit] = []
        missing: list[str] = []
        for key, version, updated_at, model, similarity in found:
            document = self._cache.get(key, (version, updated_at, model))
            if document is None:
                missing.append(key)
            else:
                hits.append(ColdHit(document=document, cosine=self._cosine(similarity)))
        if missing:
            rows = await self._reader.read("documents_by_key", filters, vector, {"keys": missing})
            hits += [self._read(*row) for row in rows[0][0] if is_whole(row[0])]
        return hits

    def _read(
        self, values: Sequence[Any], terms: str | None, tokens: bytes | None, found: Row
    ) -> ColdHit:
        _, version, updated_at, model, similarity = found
        document = document_from(values, terms, tokens, model)
        self._cache.keep((version, updated_at, model), document)
        return ColdHit(document=document, cosine=self._cosine(similarity))

    def _cosine(self, similarity: float | None) -> float | None:
        return None if similarity is None else self._connection.dialect.cosine(similarity)


def _size(document: ColdDocument) -> int:
    texts = len(document.record.content) + 8 * len(document.terms)
    return _OVERHEAD + texts + len(document.tokens or b"")
