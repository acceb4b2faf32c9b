"""From records to stored vectors."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrata_memory.concurrency import in_slices
from orchestrata_memory.embedding import token_vectors
from orchestrata_memory.embedding.base import Embedder, Encoding
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import MemoryRecord


class Vectorizer:
    """Embeds records; texts the model fails on are left out."""

    def __init__(self, embedder: Embedder, *, late_interaction: bool) -> None:
        self._embedder = embedder
        self._late_interaction = late_interaction

    @property
    def model(self) -> str:
        """Name of the model whose vectors are made here."""
        return self._embedder.model_name

    async def vectors(self, records: Sequence[MemoryRecord]) -> dict[str, StoredVector]:
        """Vectors by key.

        Raises:
            MemoryEmbeddingError: The model as a whole does not work.
        """
        encodings = await self._embedder.embed([record.content for record in records])
        encoded = [
            (record, encoding)
            for record, encoding in zip(records, encodings, strict=True)
            if encoding is not None
        ]
        vectors = await in_slices(encoded, self._packed)
        return {record.key: vector for (record, _), vector in zip(encoded, vectors, strict=True)}

    def _packed(self, encoded: tuple[MemoryRecord, Encoding]) -> StoredVector:
        record, encoding = encoded
        return StoredVector(
            version=record.version,
            model=self.model,
            vector=encoding.vector,
            tokens=token_vectors.pack(encoding) if self._late_interaction else None,
        )
