"""Batches of writes: prepared, written, and divided where one of them is bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neo4j import AsyncManagedTransaction
from neo4j.exceptions import DriverError, Neo4jError

from orchestrata_memory.cold.base import ColdPut, ColdWrite
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.failures import PART, BadData, code_of, translated
from orchestrata_memory.cold.queries import query
from orchestrata_memory.cold.rows import Properties, properties_of, vector_properties
from orchestrata_memory.cold.transaction import Prepared, PreparedPut, attach, write_batch
from orchestrata_memory.concurrency import in_slices
from orchestrata_memory.errors import MemoryStorageError, MemoryUnavailableError
from orchestrata_memory.hot.base import StoredVector

_Refused = (Neo4jError, DriverError, *BadData)


class GraphWriter:
    """Writes memories and their vectors.

    Args:
        connection: The open connection.
        dimension: Dimension of every vector.
    """

    def __init__(self, connection: GraphConnection, *, dimension: int) -> None:
        self._connection = connection
        self._dimension = dimension

    async def apply(self, writes: Sequence[ColdWrite]) -> Mapping[str, str]:
        """See `ColdStore.apply`."""
        problems: dict[str, str] = {}
        tried = await in_slices(writes, lambda write: self._prepared(write, problems))
        prepared = [done for done in tried if done is not None]
        refused = await self._write(prepared)
        if refused and len(refused) == len(prepared):
            await self._probe()
        return problems | refused

    async def attach_vectors(self, vectors: Mapping[str, StoredVector]) -> None:
        """See `ColdStore.attach_vectors`.

        Raises:
            MemoryStorageError: A vector does not fit; the others are set.
        """
        rows: dict[str, tuple[int, Properties]] = {}
        bad: list[str] = []
        for key, vector in vectors.items():
            try:
                rows[key] = (vector.version, vector_properties(vector, self._dimension))
            except ValueError:
                bad.append(key)

        async def work(tx: AsyncManagedTransaction) -> None:
            await attach(tx, rows)

        if rows:
            try:
                await self._connection.write(work)
            except _Refused as error:
                raise translated(error) from error
        if bad:
            raise MemoryStorageError(
                f"{len(bad)} vectors do not fit the graph's dimension of {self._dimension}, or are "
                f"all zeros; the first is that of the key {bad[0]!r}"
            )

    def _prepared(self, write: ColdWrite, problems: dict[str, str]) -> Prepared | None:
        if not isinstance(write, ColdPut):
            return write
        try:
            vector = write.vector
            return PreparedPut(
                put=write,
                properties=properties_of(write),
                vector=None if vector is None else vector_properties(vector, self._dimension),
            )
        except (ValueError, TypeError) as error:
            problems[write.record.key] = f"it cannot be written to the graph: {_reason(error)}"
            return None

    async def _write(self, writes: Sequence[Prepared]) -> dict[str, str]:
        """Write a batch; halve it where it is refused, until the bad ones stand alone.

        Traces: REQ-010-010
        """
        if not writes:
            return {}

        async def work(tx: AsyncManagedTransaction) -> None:
            await write_batch(tx, writes)

        try:
            await self._connection.write(work)
        except _Refused as error:
            if len(writes) == 1:
                return {writes[0].key: f"the graph refused it ({code_of(error)})"}
        else:
            return {}
        middle = len(writes) // 2
        return await self._write(writes[:middle]) | await self._write(writes[middle:])

    async def _probe(self) -> None:
        """When every write was refused, is it they or the graph?

        Raises:
            MemoryUnavailableError: The graph takes no write at all.
        """

        async def work(tx: AsyncManagedTransaction) -> None:
            result = await tx.run(query("probe_write"))
            await result.consume()

        try:
            await self._connection.write(work)
        except _Refused as error:
            raise MemoryUnavailableError(PART, f"it takes no writes ({code_of(error)})") from error


def _reason(error: Exception) -> str:
    """The text of our own checks; of others only the kind, which quotes nothing."""
    text = str(error)
    return text if text.startswith(("its vector", "metadata.")) else type(error).__name__
