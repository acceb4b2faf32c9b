"""From what a look-up found to documents: those that were read before are not sent again.

A look-up answers with the state of what it found: key, version, time of change and model of the
vectors. Under these a document never changes, so what was read once may stand for it; what is
found, readable and current is the graph's answer each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from sys import getsizeof
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

_OVERHEAD: Final = 2_000
_A_TERM: Final = 96
_A_NAME: Final = 80
_JSON_AS_OBJECTS: Final = 6
"""Bytes of a document besides its texts and vectors, of a term, of a tag or key besides its
letters, and of a letter of JSON when it is read: as measured, rounded up."""

_METADATA: Final = 4

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

    def keep(self, state: State, document: ColdDocument, size: int) -> None:
        """Keep a document of that many bytes in place of an older state of it."""
        key = document.record.key
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
        missing: dict[str, State] = {}
        for key, *state in found:
            document = self._cache.get(key, state)
            if document is None:
                missing[key] = state
            else:
                documents.append(document)
        if missing:
            documents += await self._read(missing, filters)
        cosines = _cosines(documents, vector)
        return [
            ColdHit(document=document, cosine=cosine)
            for document, cosine in zip(documents, cosines, strict=True)
        ]

    async def _read(self, states: Mapping[str, State], filters: Filters) -> list[ColdDocument]:
        asked = {**filters.parameters, "keys": list(states)}
        [[rows]] = await self._connection.read(filters.fill("documents_by_key"), asked)
        whole = [row for row in rows if is_whole(row[0])]
        documents = await in_slices(whole, lambda row: document_from(row, self._dimension))
        for row, document in zip(whole, documents, strict=True):
            state = state_of(row[0], document.model)
            # read while it changes, it may be half of one state and half of the next
            if state == states[document.record.key]:
                self._cache.keep(state, document, size_of(document, metadata=row[0][_METADATA]))
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
    # not by BLAS, whose threads cost more than they save (see retrieval.md)
    products = np.einsum("ij,j->i", np.stack([*held.values()]), vector)
    for number, cosine in zip(held, products.tolist(), strict=True):
        cosines[number] = cosine
    return cosines


def size_of(document: ColdDocument, *, metadata: str | None) -> int:
    """Bytes that a document takes, roughly.

    Args:
        document: The document.
        metadata: Its metadata as the JSON it was read from.
    """
    record = document.record
    names = (*record.tags, *record.shared_with, *record.sources)
    return (
        _OVERHEAD
        + getsizeof(record.content)
        + getsizeof(record.summary or "")
        + _JSON_AS_OBJECTS * len(metadata or "")
        + _A_TERM * len(document.terms)
        + sum(_A_NAME + len(name) for name in names)
        + (0 if document.vector is None else document.vector.nbytes)
        + len(document.tokens or b"")
    )
