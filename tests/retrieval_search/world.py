"""Everything one search needs, with short ways to fill it and ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import MemoryContext, MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.search import SearchOutcome, SearchPipeline
from tests.retrieval_search.doubles import START, ColdDouble, HotDouble, RulesDouble


@dataclass
class World:
    hot: HotDouble
    cold: ColdDouble
    rules: RulesDouble
    index: HotIndex
    embedder: Embedder
    search: SearchPipeline
    find: FindPipeline

    async def vector(self, record: MemoryRecord) -> StoredVector:
        (encoding,) = await self.embedder.embed([record.content])
        assert encoding is not None
        return StoredVector(
            version=record.version, model=self.embedder.model_name, vector=encoding.vector
        )

    async def in_cold(self, *records: MemoryRecord) -> None:
        """Memories that moved to cold."""
        for record in records:
            self.cold.put(record, await self.vector(record))
            self.hot.count_cold(record)

    async def ask(self, query: str, volk: str = "A", **options: Any) -> SearchOutcome:
        values = {"scope": MemoryScope(), "limit": 10, "min_similarity": 0.7, "now": START}
        return await self.search.search(
            MemoryContext(volk_id=volk, session_id="s"), query, **(values | options)
        )

    async def keys(self, query: str, volk: str = "A", **options: Any) -> list[str]:
        return [hit.record.key for hit in (await self.ask(query, volk, **options)).hits]
