"""One store, on each graph in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrata_memory.cold.store import GraphColdStore
from tests.cold.builders import opened
from tests.servers.graph import GraphServer


@pytest.fixture
async def store(clean_graph: GraphServer) -> AsyncIterator[GraphColdStore]:
    """An open store on an empty graph."""
    async with opened(clean_graph) as made:
        yield made
