"""The hot tier as search and find use it: synchronised, counted, embedded, verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrata_memory.cold.base import Readable
from orchestrata_memory.embedding import token_vectors
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.hot.base import HotState, HotStore, StoredVector
from orchestrata_memory.models import KeyState, MemoryRecord, MemoryScope, census_names
from orchestrata_memory.retrieval.hot_index import HotIndex

MOST_PENDING: Final = 256
"""Entries a search embeds before it answers; older ones follow by the worker."""

MOST_AWAITED: Final = 2_048
"""Entries whose vectors a search looks for in Redis, where a worker may have put them."""

_CENSUS_ATTEMPTS: Final = 3


class HotSource:
    """What the pipelines ask of hot besides the index."""

    def __init__(self, hot: HotStore, index: HotIndex) -> None:
        self._hot = hot
        self._index = index

    async def synchronised(self) -> bool:
        """Bring the index up to date; False when Redis is down."""
        try:
            await self._index.sync()
        except MemoryUnavailableError:
            return False
        return True

    async def holds_all(self, scope: MemoryScope) -> bool:
        """Bring the index up to date, and say whether hot holds every live memory of the scope.

        Then cold need not be asked. The census of the narrowest of session, project and all is
        compared with the index; where something changes all the time the answer is no.

        Raises:
            MemoryUnavailableError: Redis is down.
        """
        name = census_names.covering(scope)
        for _ in range(_CENSUS_ATTEMPTS):
            whole = await self._index.sync(name)
            if whole is not None:
                return whole
        return False

    async def embed_pending(
        self, embedder: Embedder, scope: MemoryScope, readable: Readable | None
    ) -> None:
        """Embed the newest memories of the scope that have no vector yet.

        So what was stored is found by meaning at once. Vectors that a worker of any process has
        attached since are taken over first; this process's worker gets what is embedded here
        from the embedder's cache.

        Raises:
            MemoryEmbeddingError: The model does not work.
            MemoryUnavailableError: Redis is down.

        Traces: REQ-010-008
        """
        keys = self._index.missing_vectors(scope, readable, MOST_AWAITED)
        if not keys:
            return
        attached = await self._hot.vectors(keys)
        pending = [
            key for key in keys if key not in attached or not self._index.attach(key, attached[key])
        ]
        await self._embed(embedder, pending[:MOST_PENDING])

    async def _embed(self, embedder: Embedder, keys: Sequence[str]) -> None:
        states = await self.read(keys)
        records = [state.record for state in states.values() if state.record is not None]
        encodings = await embedder.embed([record.content for record in records]) if records else []
        for record, encoding in zip(records, encodings, strict=True):
            if encoding is None:
                self._index.give_up_on_vector(record.key, record.version)
                continue
            vector = StoredVector(
                version=record.version,
                model=embedder.model_name,
                vector=encoding.vector,
                tokens=None if encoding.tokens is None else token_vectors.pack(encoding),
            )
            self._index.attach(record.key, vector)

    async def read(self, keys: Sequence[str]) -> dict[str, HotState]:
        """Present states, from Redis itself."""
        return await self._hot.read(keys) if keys else {}


def changed_since(version: int, state: HotState | None, record: MemoryRecord | None) -> bool:
    """Whether the newest state of a memory is another one than the version that was found.

    Args:
        version: What was found.
        state: What hot says now; None when hot was not asked.
        record: The newest record, from whichever tier has it; None: gone.
    """
    if state is not None and (state.state is KeyState.DELETED or state.version > version):
        return True
    return record is None or record.version != version
