"""Whether the vector index can be asked yet.

An embedded graph builds its vector index in memory with the first question after its start: half a
minute for 15,000 vectors, longer than an operation may take. So one question is asked in the
background when the store opens, and again when the index did not answer in time, as after a restart
of the graph. Until it is answered vectors are compared one by one, which takes some 30 microseconds
each and is exact.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import SearchIndexes
from orchestrata_memory.cold.failures import DriverFailure, code_of, is_temporary
from orchestrata_memory.cold.filters import UNFILTERED

_logger: Final = logging.getLogger(__name__)

_LOADING_SECONDS: Final = 900.0
_PAUSE_SECONDS: Final = 5.0


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
        """Begin to wait for it in the background; nothing happens while that goes on."""
        if self._task is None or self._task.done():
            self.ready = False
            self._task = asyncio.create_task(self._wait(), name="orchestrata-memory vector index")

    async def close(self) -> None:
        """Stop waiting; idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _wait(self) -> None:
        while not self.ready:
            self.ready = await self._answers()
            if not self.ready:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _answers(self) -> bool:
        """Ask once; False where it is worth asking again.

        Any other failure is left to whoever needs the index: they meet it too, and can say so.
        """
        vector = [1.0, *([0.0] * (self._dimension - 1))]
        asked = {"index": self.name, "vector": vector, "width": 1, "limit": 1}
        try:
            async with asyncio.timeout(_LOADING_SECONDS):
                await self._connection.at_length(UNFILTERED.fill("found_by_vector"), asked)
        except DriverFailure as error:
            _logger.warning("the vector index does not answer yet: %s", code_of(error))
            return not is_temporary(error)
        except Exception as error:  # noqa: BLE001 - see above
            _logger.warning("the vector index cannot be asked: %s", type(error).__name__)
        return True
