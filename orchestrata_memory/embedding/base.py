"""The embedding contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.interfaces import PartHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """A text as vectors.

    Attributes:
        vector: float32, shape (dimension,), unit length; the model's own sentence vector.
        tokens: float32, shape (n, dimension), unit rows: last-layer states of the text's word
            pieces without special tokens; None when the model gives none or none were asked for.
        pieces: The n word pieces as text (``##`` marks a continuation), parallel to `tokens`.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32] | None = None
    pieces: tuple[str, ...] = ()


class EmbeddingModel(Protocol):
    """A model, called from one thread only; blocking."""

    @property
    def name(self) -> str:
        """Name stored beside every vector, such as ``all-MiniLM-L6-v2``."""
        ...

    @property
    def backend(self) -> str:
        """What computes, such as ``sentence-transformers`` or ``onnx``."""
        ...

    @property
    def dimension(self) -> int: ...

    def load(self) -> None:
        """Load the weights; idempotent.

        Raises:
            MemoryConfigurationError: Not installed or not found, with what to install.
        """
        ...

    def encode(self, texts: Sequence[str], *, with_tokens: bool) -> list[Encoding]:
        """Encode texts, in order. Never called with an empty text."""
        ...


class Embedder(Protocol):
    """Embedding as the engine uses it: asynchronous, batched, cached, on its own thread."""

    @property
    def model_name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def health(self) -> PartHealth: ...

    async def embed(self, texts: Sequence[str]) -> list[Encoding | None]:
        """Encode documents in order, in batches; None where one text alone fails.

        Cached by content; concurrent requests for one text share one model call.

        Raises:
            MemoryEmbeddingError: The model as a whole does not work.
        """
        ...

    async def embed_query(self, text: str) -> Encoding:
        """Encode one query, ahead of waiting documents; concurrent queries share a batch.

        Raises:
            MemoryEmbeddingError: It could not be encoded.
        """
        ...

    async def forget(self, texts: Sequence[str]) -> None:
        """Drop cached encodings of contents that were deleted or replaced; never raises."""
        ...
