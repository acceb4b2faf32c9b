"""One store, on each graph in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.config.settings import GraphSettings
from tests.cold.builders import DIMENSION, address_of
from tests.servers.graph import GraphServer


@pytest.fixture
async def store(clean_graph: GraphServer) -> AsyncIterator[GraphColdStore]:
    """An open store on an empty graph."""
    made = GraphColdStore(GraphSettings(), dimension=DIMENSION, server=address_of(clean_graph))
    await made.open()
    yield made
    await made.close()
