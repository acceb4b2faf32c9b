"""Whether the vector index can be asked yet.

An embedded graph builds its vector index in memory with the first question after its start: half a
minute for 15,000 vectors, longer than an operation may take. So one question is asked in the
background when the store opens, and until it is answered vectors are compared one by one, which
takes some 30 microseconds each and is exact.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import SearchIndexes
from orchestrata_memory.cold.failures import BadData, DriverFailure, code_of
from orchestrata_memory.cold.filters import UNFILTERED
from orchestrata_memory.errors import MemoryEngineError

_logger: Final = logging.getLogger(__name__)


class VectorIndex:
    """The vector index of an open connection.

    Args:
        connection: The open connection.
        indexes: Names of the search indexes.
        dimension: Dimension of every vector.
    """

    def __init__(
        self, connection: GraphConnection, indexes: SearchIndexes, *, dimension: int
    ) -> None:
        self._connection = connection
        self.name = indexes.vector
        self._dimension = dimension
        self._task: asyncio.Task[None] | None = None
        self.ready = False

    def start(self) -> None:
        """Begin to wait for it in the background."""
        self._task = asyncio.create_task(self._wait(), name="orchestrata-memory vector index")

    async def close(self) -> None:
        """Stop waiting; idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _wait(self) -> None:
        vector = [1.0, *([0.0] * (self._dimension - 1))]
        asked = {"index": self.name, "vector": vector, "width": 1, "limit": 1}
        try:
            await self._connection.define(UNFILTERED.fill("found_by_vector"), asked)
        except (*DriverFailure, *BadData, MemoryEngineError) as error:
            # whoever needs it meets the same error, and says so
            _logger.warning("the vector index did not answer at start: %s", code_of(error))
        self.ready = True
