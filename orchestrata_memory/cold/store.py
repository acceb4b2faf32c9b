"""`ColdStore` over Bolt: Neo4j and ArcadeDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.cold.base import (
    ColdCandidates,
    ColdHit,
    ColdQuery,
    ColdVersion,
    ColdWrite,
    FindOrder,
    Readable,
    Related,
    TermStatistics,
)
from orchestrata_memory.cold.candidates import CandidateFinder
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row, SearchIndexes
from orchestrata_memory.cold.documents import Documents
from orchestrata_memory.cold.failures import PART, DriverFailure, translated
from orchestrata_memory.cold.filters import filters_of
from orchestrata_memory.cold.queries import filled, query
from orchestrata_memory.cold.related import related
from orchestrata_memory.cold.rows import (
    is_whole,
    record_from,
    records_from,
    slot_of,
    vector_from,
)
from orchestrata_memory.cold.statistics import Statistics
from orchestrata_memory.cold.trail import GraphTrail
from orchestrata_memory.cold.vector_index import VectorIndex
from orchestrata_memory.cold.writer import GraphWriter
from orchestrata_memory.config.settings import GraphSettings
from orchestrata_memory.errors import MemoryEngineError, MemoryUnavailableError
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.interfaces import HealthStatus, PartHealth
from orchestrata_memory.models import AuditRecord, Delegation, MemoryRecord, MemoryScope
from orchestrata_memory.models.census_names import ALL, of_project

_READS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    connection: GraphConnection
    indexes: SearchIndexes
    writer: GraphWriter
    finder: CandidateFinder
    trail: GraphTrail
    statistics: Statistics
    vector_index: VectorIndex


class GraphColdStore:
    """The cold tier on a graph that speaks Cypher over Bolt; implements `ColdStore`.

    Args:
        settings: Time limit, size of the pool and, without `server`, where the graph is.
        dimension: Dimension of every vector.
        server: An embedded server's address; None: the configured one.

    Raises:
        MemoryConfigurationError: No graph is configured and no `server` given.

    Traces: REQ-010-028, REQ-010-029
    """

    def __init__(
        self,
        settings: GraphSettings,
        *,
        dimension: int,
        server: GraphAddress | None = None,
    ) -> None:
        self._address = server if server is not None else GraphAddress.from_settings(settings)
        self._settings = settings
        self._dimension = dimension
        self._open: _Parts | None = None

    # --- lifecycle -----------------------------------------------------------------------
    async def open(self) -> None:
        """See `ColdStore.open`; idempotent, and so is the schema."""
        if self._open is not None:
            return
        connection = GraphConnection(
            self._address,
            timeout=self._settings.operation_timeout_seconds,
            max_connections=self._settings.max_connections,
        )
        await connection.open()
        try:
            indexes = await connection.dialect.prepare(
                connection.at_length, database=connection.database, dimension=self._dimension
            )
        except DriverFailure as error:
            await connection.close()
            raise translated(error, opening=True) from error
        except BaseException:
            await connection.close()
            raise
        vector_index = VectorIndex(connection, indexes, dimension=self._dimension)
        vector_index.start()
        documents = Documents(
            connection, dimension=self._dimension, room=self._settings.document_cache_mb << 20
        )
        self._open = _Parts(
            connection=connection,
            indexes=indexes,
            writer=GraphWriter(connection, dimension=self._dimension),
            finder=CandidateFinder(
                connection, indexes, vector_index, documents, dimension=self._dimension
            ),
            trail=GraphTrail(connection),
            statistics=Statistics(connection, indexes),
            vector_index=vector_index,
        )

    async def close(self) -> None:
        """Close every connection; idempotent."""
        parts, self._open = self._open, None
        if parts is not None:
            await parts.vector_index.close()
            await parts.connection.close()

    async def health(self) -> PartHealth:
        """Whether the graph answers, how fast, and which one it is; never raises."""
        if self._open is None:
            return PartHealth(status=HealthStatus.STOPPED, message="not open")
        connection = self._open.connection
        details = {
            "server": connection.agent,
            "dialect": connection.dialect.name,
            "database": connection.database,
            "uri": self._address.uri,
        }
        started = perf_counter()
        try:
            await connection.read("RETURN 1", {})
        except MemoryEngineError as error:
            return PartHealth(status=HealthStatus.UNHEALTHY, message=str(error), details=details)
        details["vector_index"] = "ready" if self._open.vector_index.ready else "being loaded"
        details["roundtrip_ms"] = f"{(perf_counter() - started) * 1000:.2f}"
        return PartHealth(status=HealthStatus.HEALTHY, details=details)

    # --- writes --------------------------------------------------------------------------
    async def apply(self, writes: Sequence[ColdWrite]) -> Mapping[str, str]:
        """See `ColdStore.apply`."""
        parts = self._parts
        try:
            return await parts.writer.apply(writes)
        finally:
            parts.statistics.forget()

    async def attach_vectors(self, vectors: Mapping[str, StoredVector]) -> None:
        """See `ColdStore.attach_vectors`."""
        await self._parts.writer.attach_vectors(vectors)

    async def put_delegations(self, delegations: Sequence[Delegation]) -> None:
        """See `ColdStore.put_delegations`."""
        await self._parts.trail.put_delegations(delegations)

    async def delegations(self) -> list[Delegation]:
        """Every delegation, revoked and expired ones included, the newest version of each."""
        return await self._parts.trail.delegations()

    async def append_audit(self, records: Sequence[AuditRecord]) -> None:
        """See `ColdStore.append_audit`."""
        await self._parts.trail.append_audit(records)

    async def prune_audit(self, before: datetime) -> int:
        """See `ColdStore.prune_audit`."""
        return await self._parts.trail.prune_audit(before)

    # --- reads ---------------------------------------------------------------------------
    async def versions(self, keys: Sequence[str]) -> dict[str, ColdVersion]:
        """See `ColdStore.versions`."""
        if not keys:
            return {}
        rows = await self._read(query("versions_by_key"), keys=list(keys))
        return {key: ColdVersion(version=version, deleted=gone) for key, version, gone in rows}

    async def get(self, keys: Sequence[str]) -> dict[str, MemoryRecord]:
        """See `ColdStore.get`."""
        if not keys:
            return {}
        rows = await self._read(filled("records_by_key"), keys=list(keys))
        return {record.key: record for record in records_from(rows)}

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]:
        """See `ColdStore.vectors`; ones that cannot be compared are left out."""
        if not keys:
            return {}
        rows = await self._read(query("vectors_by_key"), keys=list(keys))
        return {
            key: StoredVector(
                version=version,
                model=model or "",
                vector=vector,
                tokens=bytes(tokens) if tokens is not None else None,
            )
            for key, version, model, values, tokens in rows
            if (vector := vector_from(values, self._dimension)) is not None
        }

    async def candidates(self, query: ColdQuery) -> ColdCandidates:
        """See `ColdStore.candidates`."""
        return await self._parts.finder.candidates(query)

    async def statistics(
        self, terms: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> TermStatistics:
        """See `ColdStore.statistics`."""
        return await self._parts.statistics.of(terms, scope, readable)

    async def speakers(
        self, names: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> frozenset[str]:
        """See `ColdStore.speakers`."""
        if not names:
            return frozenset()
        filters = filters_of(scope, readable)
        folded = [name.casefold() for name in names]
        rows = await self._read(filters.fill("speakers"), names=folded, **filters.parameters)
        return frozenset(row[0] for row in rows)

    async def neighbours(
        self, slots: Sequence[tuple[str, str, int]], vector: NDArray[np.float32] | None
    ) -> list[ColdHit]:
        """See `ColdStore.neighbours`."""
        names = list(dict.fromkeys(slot_of(*slot) for slot in slots))
        return await self._parts.finder.at_slots(names, vector)

    async def find(
        self,
        scope: MemoryScope,
        *,
        tags: Sequence[str] = (),
        match_all: bool = True,
        readable: Readable | None,
        order: FindOrder = FindOrder.NEWEST,
        limit: int,
        offset: int = 0,
        include_summaries: bool = False,
    ) -> list[MemoryRecord]:
        """See `ColdStore.find`.

        Traces: REQ-010-012, REQ-010-013
        """
        filters = filters_of(scope, readable)
        for _ in range(_READS):
            rows = await self._read(
                filters.fill(f"find_{order.value}"),
                tags=list(dict.fromkeys(tags)),
                match_all=match_all,
                include_summaries=include_summaries,
                limit=limit,
                offset=offset,
                **filters.parameters,
            )
            if all(is_whole(values) for (values,) in rows):
                break  # else some are being deleted: without them a page would be too short
        return records_from(rows)

    async def related(
        self, key: str, *, depth: int, limit: int, readable: Readable | None
    ) -> list[Related]:
        """See `ColdStore.related`."""
        return await related(
            self._parts.connection, key, depth=depth, limit=limit, readable=readable
        )

    async def summaries_of(self, keys: Sequence[str]) -> dict[str, list[MemoryRecord]]:
        """See `ColdStore.summaries_of`; keys without one are left out.

        Traces: REQ-010-035
        """
        if not keys:
            return {}
        summaries: dict[str, list[MemoryRecord]] = {}
        for key, values in await self._read(filled("summaries_of"), keys=list(keys)):
            if is_whole(values):
                summaries.setdefault(key, []).append(record_from(values))
        return summaries

    async def audit_of(self, key: str, *, limit: int) -> list[AuditRecord]:
        """The newest `limit` records of a key, the oldest of them first."""
        return await self._parts.trail.audit_of(key, limit=limit)

    async def counts(self) -> dict[str, int]:
        """See `ColdStore.counts`."""
        rows = await self._read(query("count_by_project"))
        projects = {of_project(project): n for project, n in rows if project is not None}
        return {ALL: sum(n for _, n in rows), **projects}

    async def count_session(self, session_id: str) -> int:
        """Number of live memories of a session."""
        rows = await self._read(query("count_session"), session_id=session_id)
        return int(rows[0][0])

    async def without_vectors(self, model: str, limit: int) -> list[MemoryRecord]:
        """See `ColdStore.without_vectors`."""
        rows = await self._read(filled("without_vectors"), model=model, limit=limit)
        return records_from(rows)

    async def embedding_models(self) -> dict[str, int]:
        """See `ColdStore.embedding_models`."""
        return {row[0]: row[1] for row in await self._read(query("embedding_models"))}

    # --- inside --------------------------------------------------------------------------
    @property
    def _parts(self) -> _Parts:
        if self._open is None:
            raise MemoryUnavailableError(PART, "the cold store is not open")
        return self._open

    async def _read(self, text: str, **parameters: object) -> list[Row]:
        return await self._parts.connection.read(text, parameters)
