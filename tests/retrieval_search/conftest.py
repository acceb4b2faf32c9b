from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrata_memory.config.settings import EmbeddingSettings, SearchSettings
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.embedding.factory import build_embedder
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.search import SearchPipeline
from tests.retrieval_search.doubles import ANALYZER, ColdDouble, HotDouble, RulesDouble
from tests.retrieval_search.world import World


@pytest.fixture(scope="session")
async def embedder() -> AsyncIterator[Embedder]:
    service = build_embedder(EmbeddingSettings(backend="hashing", dimension=64))
    await service.open()
    yield service
    await service.close()


@pytest.fixture
async def world(embedder: Embedder) -> AsyncIterator[World]:
    """Pipelines over doubles of the tiers and the rules."""
    hot, cold, rules = HotDouble(), ColdDouble(), RulesDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    yield World(
        hot=hot,
        cold=cold,
        rules=rules,
        index=index,
        embedder=embedder,
        search=SearchPipeline(
            hot.port, cold.port, index, embedder, rules.port, ANALYZER, SearchSettings()
        ),
        find=FindPipeline(hot.port, cold.port, index, rules.port),
    )
    await index.close()
