"""Small vector arithmetic that every backend shares, and the check each result passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.errors import MemoryEmbeddingError


def unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vector at length one; a zero vector stays zero."""
    norm = float(np.linalg.norm(vector))
    return (vector / norm if norm > 0 else vector).astype(np.float32)


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length one; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


def check_vector(vector: NDArray[np.float32], dimension: int) -> None:
    """Make sure that a vector can be stored and compared.

    Raises:
        MemoryEmbeddingError: Wrong dimension, not finite, or all zero.

    Traces: REQ-010-038
    """
    if vector.shape != (dimension,):
        raise MemoryEmbeddingError(
            f"a vector of shape {vector.shape} does not fit the dimension {dimension}: check "
            "embedding.model and embedding.dimension, and re-embed what is stored"
        )
    if not np.isfinite(vector).all():
        raise MemoryEmbeddingError("the model gave a vector with values that are no numbers")
    if not vector.any():
        raise MemoryEmbeddingError("the model gave a vector of zeros, which has no direction")
