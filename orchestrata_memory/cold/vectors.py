"""Queries that compare vectors.

The store writes sound vectors only, so they are compared unseen. Should another component have
left one that is all zeros or of another dimension, the server refuses the whole query; from then
on each vector is looked at first, which is dearer but breaks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row
from orchestrata_memory.cold.failures import code_of
from orchestrata_memory.cold.filters import Filters
from orchestrata_memory.cold.rows import sound
from orchestrata_memory.errors import MemoryEmbeddingError, MemoryStorageError

_ILL_VECTOR = "Neo.ClientError.Statement.ArgumentError"


class VectorReader:
    """Runs queries that compare vectors.

    Args:
        connection: The open connection.
        dimension: Dimension of every sound vector.
    """

    def __init__(self, connection: GraphConnection, *, dimension: int) -> None:
        self._connection = connection
        self._dimension = dimension
        self._careful = False

    def comparable(self, vector: NDArray[np.float32] | None) -> list[float] | None:
        """A query's vector as a parameter.

        Raises:
            MemoryEmbeddingError: Another dimension, all zeros, or a value that is not finite.
        """
        if vector is None:
            return None
        try:
            return sound(vector, self._dimension)
        except ValueError as error:
            raise MemoryEmbeddingError(f"a query cannot be compared: {error}") from error

    async def read(
        self,
        name: str,
        filters: Filters,
        vector: list[float],
        parameters: Mapping[str, Any],
    ) -> list[Row]:
        """Run the query of that name; vectors that cannot be compared are passed over."""
        given = {
            **filters.parameters,
            **parameters,
            "vector": vector,
            "dimension": self._dimension,
        }
        careful = self._careful
        try:
            return await self._connection.read(filters.fill(name, careful=careful), given)
        except MemoryStorageError as error:
            if careful or error.__cause__ is None or code_of(error.__cause__) != _ILL_VECTOR:
                raise
        self._careful = True
        return await self._connection.read(filters.fill(name, careful=True), given)
