"""From what a look-up found to documents: those that were read before are not sent again.

A look-up answers with the state of what it found: key, version, time of change and model of the
vectors. Under these a document never changes, so what was read once may stand for it; what is
found, readable and current is the graph's answer each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.cold.base import ColdDocument, ColdHit
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row
from orchestrata_memory.cold.filters import Filters
from orchestrata_memory.cold.rows import document_from, is_whole, state_of
from orchestrata_memory.concurrency import in_slices

LONGEST: Final = 16 << 10
"""A larger document is not kept: to read it is dear for other reasons."""

_OVERHEAD: Final = 1_500
"""Bytes of a document besides its texts and vectors, roughly."""

State = Sequence[Any]
"""Version, time of change, model, as a look-up gives them."""


class DocumentCache:
    """The documents read last.

    Args:
        room: Bytes they may take.
    """

    def __init__(self, room: int) -> None:
        self._room = room
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
        while self._bytes > self._room:
            self._drop(self._kept.popitem(last=False)[1])

    def _drop(self, kept: tuple[State, ColdDocument, int] | None) -> None:
        if kept is not None:
            self._bytes -= kept[2]


class Documents:
    """Reads documents.

    Args:
        connection: The open connection.
        dimension: Dimension of every sound vector.
        room: Bytes for documents that were read.
    """

    def __init__(self, connection: GraphConnection, *, dimension: int, room: int) -> None:
        self._connection = connection
        self._dimension = dimension
        self._cache = DocumentCache(room)

    async def hits(
        self, found: Iterable[Row], filters: Filters, vector: NDArray[np.float32] | None
    ) -> list[ColdHit]:
        """Hits of what was found, rows of ``fragment_found.cypher``; what is gone is left out."""
        documents: list[ColdDocument] = []
        missing: list[str] = []
        for key, *state in found:
            document = self._cache.get(key, state)
            if document is None:
                missing.append(key)
            else:
                documents.append(document)
        if missing:
            documents += await self._read(missing, filters)
        cosines = _cosines(documents, vector)
        return [
            ColdHit(document=document, cosine=cosine)
            for document, cosine in zip(documents, cosines, strict=True)
        ]

    async def _read(self, keys: Sequence[str], filters: Filters) -> list[ColdDocument]:
        asked = {**filters.parameters, "keys": keys}
        [[rows]] = await self._connection.read(filters.fill("documents_by_key"), asked)
        whole = [row for row in rows if is_whole(row[0])]
        documents = await in_slices(whole, lambda row: document_from(row, self._dimension))
        for row, document in zip(whole, documents, strict=True):
            self._cache.keep(state_of(row[0], document.model), document)
        return documents


def _cosines(
    documents: Sequence[ColdDocument], vector: NDArray[np.float32] | None
) -> Sequence[float | None]:
    cosines: list[float | None] = [None] * len(documents)
    held = {
        number: document.vector
        for number, document in enumerate(documents)
        if document.vector is not None
    }
    if vector is None or not held:
        return cosines
    for number, cosine in zip(held, np.stack([*held.values()]) @ vector, strict=True):
        cosines[number] = float(cosine)
    return cosines


def _size(document: ColdDocument) -> int:
    texts = len(document.record.content) + 8 * len(document.terms)
    vectors = 0 if document.vector is None else document.vector.nbytes
    return _OVERHEAD + texts + vectors + len(document.tokens or b"")
