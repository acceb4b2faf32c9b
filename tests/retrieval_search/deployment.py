"""Search and find over a real Redis, a real graph and the real rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.cold.base import ColdDelete, ColdPut, ColdWrite
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.config.settings import (
    GovernanceSettings,
    GraphSettings,
    RedisSettings,
    SearchSettings,
)
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.governance.prolog import PrologGovernance
from orchestrata_memory.hot.base import Confirmation, OutboxKind, OutboxRecord, StoredVector
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.kernel import ConfiguredDirectory
from orchestrata_memory.models import AuditRecord, MemoryContext, MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.search import SearchOutcome, SearchPipeline
from tests.retrieval_search.doubles import ANALYZER, START
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

VOLKS: dict[str, tuple[str, ...]] = dict.fromkeys(("A", "B", "C", "D", "A1"), ())


def audit(key: str) -> AuditRecord:
    return AuditRecord(
        audit_id=uuid4().hex,
        operation="test",
        volk_id="A",
        session_id="s",
        key=key,
        rule="",
        outcome="allowed",
        detail="",
        at=datetime.now(UTC),
    )


@dataclass
class Deployment:
    hot: RedisHotStore
    cold: GraphColdStore
    governance: PrologGovernance
    embedder: Embedder
    index: HotIndex = field(init=False)
    search: SearchPipeline = field(init=False)
    find: FindPipeline = field(init=False)

    def __post_init__(self) -> None:
        self.index = HotIndex(self.hot, ANALYZER, self.embedder)
        self.search = SearchPipeline(
            self.hot,
            self.cold,
            self.index,
            self.embedder,
            self.governance,
            ANALYZER,
            SearchSettings(),
        )
        self.find = FindPipeline(self.hot, self.cold, self.index, self.governance)

    async def store(self, *records: MemoryRecord) -> None:
        for record in records:
            await self.hot.insert(record, audit(record.key))

    async def update(self, record: MemoryRecord) -> None:
        await self.hot.replace(record, audit(record.key), expected_version=record.version - 1)

    async def delete(self, record: MemoryRecord) -> None:
        await self.hot.tombstone(record, audit(record.key))

    async def write_behind(self) -> None:
        """Everything of the outbox to the graph, with vectors, and confirmed."""
        while taken := await self.hot.take("worker", count=500, block_seconds=0):
            records = [one for one in taken if isinstance(one, OutboxRecord)]
            assert len(records) == len(taken)
            await self._write(records)

    async def _write(self, records: Sequence[OutboxRecord]) -> None:
        vectors = await self.vectors([one.record for one in records if one.record is not None])
        writes: dict[str, ColdWrite] = {}
        for one in records:
            if one.kind is OutboxKind.PUT and one.record is not None:
                writes[one.key] = ColdPut(
                    record=one.record,
                    terms=" ".join(ANALYZER.terms(one.record.content)),
                    vector=vectors.get(one.key),
                )
            else:
                writes[one.key] = ColdDelete(key=one.key, version=one.version)
        assert await self.cold.apply(list(writes.values())) == {}
        await self.hot.attach_vectors(vectors)
        await self.hot.confirm(
            [
                Confirmation(outbox_id=one.outbox_id, key=one.key, version=one.version)
                for one in records
            ]
        )

    async def vectors(self, records: Sequence[MemoryRecord]) -> dict[str, StoredVector]:
        encodings = await self.embedder.embed([record.content for record in records])
        return {
            record.key: StoredVector(
                version=record.version, model=self.embedder.model_name, vector=encoding.vector
            )
            for record, encoding in zip(records, encodings, strict=True)
            if encoding is not None
        }

    async def close_session(self, *sessions: str) -> None:
        """Move a session to cold for good."""
        for session in sessions:
            await self.hot.mark_closed(session)
        await self.write_behind()
        for session in sessions:
            for key, state in (await self.hot.session_keys(session)).items():
                assert await self.hot.move_out(key, state.version)

    async def ask(self, query: str, volk: str = "A", **options: Any) -> SearchOutcome:
        values = {"scope": MemoryScope(), "limit": 10, "min_similarity": 0.7, "now": START}
        context = MemoryContext(volk_id=volk, session_id="s")
        return await self.search.search(context, query, **(values | options))

    async def keys(self, query: str, volk: str = "A", **options: Any) -> list[str]:
        return [hit.record.key for hit in (await self.ask(query, volk, **options)).hits]

    async def found(self, volk: str = "A", **options: Any) -> list[str]:
        context = MemoryContext(volk_id=volk, session_id="s")
        records = await self.find.find(context, **({"scope": MemoryScope()} | options))
        return [record.key for record in records]


@asynccontextmanager
async def deployed(
    redis: RedisServer, graph: GraphServer, embedder: Embedder
) -> AsyncIterator[Deployment]:
    """One process's parts on these servers; the census begins with what cold holds."""
    hot = RedisHotStore(RedisSettings(), url=redis.url, outbox_limit=10_000)
    cold = GraphColdStore(
        GraphSettings(),
        dimension=embedder.dimension,
        server=GraphAddress(
            uri=graph.uri,
            dialect=graph.dialect,
            username=graph.username,
            password=graph.password,
            database=graph.database,
            http_url=graph.http_url,
        ),
    )
    settings = GovernanceSettings(volks=VOLKS)
    governance = PrologGovernance(settings, ConfiguredDirectory(settings))
    await hot.open()
    await cold.open()
    await governance.open()
    deployment = Deployment(hot=hot, cold=cold, governance=governance, embedder=embedder)
    try:
        await hot.census(["all"])
        await hot.seed_census(await cold.counts())
        yield deployment
    finally:
        await deployment.index.close()
        await governance.close()
        await cold.close()
        await hot.close()
