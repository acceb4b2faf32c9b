"""Short ways to make writes and to look at the graph from outside."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.cold.base import ColdPut, ColdQuery, Readable
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.config.settings import GraphSettings
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import MemoryRecord, MemoryScope
from tests.servers.graph import GraphServer

DIMENSION = 384
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALPHA, BETA = "ENG:ALPHA", "ENG:BETA"
EVERYTHING = MemoryScope()

Vector = NDArray[np.float32]


def address_of(server: GraphServer, **changes: Any) -> GraphAddress:
    values: dict[str, Any] = {
        "uri": server.uri,
        "username": server.username,
        "password": server.password,
        "database": server.database,
        "http_url": server.http_url,
    }
    return GraphAddress(**(values | changes))


@asynccontextmanager
async def opened(server: GraphServer) -> AsyncIterator[GraphColdStore]:
    """A store of its own on that server."""
    store = GraphColdStore(GraphSettings(), dimension=DIMENSION, server=address_of(server))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def unit(values: Any) -> Vector:
    vector = np.asarray(values, dtype=np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def random_vectors(count: int, seed: int = 0) -> list[Vector]:
    generator = np.random.default_rng(seed)
    return [unit(row) for row in generator.normal(size=(count, DIMENSION))]


def record(key: str, **changes: Any) -> MemoryRecord:
    content = changes.pop("content", f"content of {key}")
    minute = changes.pop("minute", 0)
    values: dict[str, Any] = {
        "key": key,
        "content": content,
        "volk_id": ALPHA,
        "session_id": "session-1",
        "created_at": START + timedelta(minutes=minute),
        "updated_at": START + timedelta(minutes=minute),
        "content_hash": hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
    }
    return MemoryRecord(**(values | changes))


def put(
    what: MemoryRecord | str,
    terms: str = "alpha",
    vector: Vector | None = None,
    **changes: Any,
) -> ColdPut:
    made = record(what, **changes) if isinstance(what, str) else what
    stored = None
    if vector is not None:
        stored = StoredVector(
            version=made.version, model="test-model", vector=vector, tokens=b"\x00\xff tokens"
        )
    return ColdPut(record=made, terms=terms, vector=stored)


def asked(
    *,
    terms: tuple[str, ...] = (),
    vector: Vector | None = None,
    scope: MemoryScope = EVERYTHING,
    readable: Readable | None = None,
    count: int = 10,
    exclude: frozenset[str] = frozenset(),
) -> ColdQuery:
    return ColdQuery(
        terms=terms, vector=vector, scope=scope, readable=readable, count=count, exclude=exclude
    )


def rows(server: GraphServer, cypher: str, **parameters: Any) -> list[list[Any]]:
    """Rows of a query, past the store."""
    with server.driver() as driver:
        result = driver.execute_query(cypher, parameters, database_=server.database)
    return [row.values() for row in result.records]


def links(server: GraphServer, key: str) -> set[tuple[str, str]]:
    """(relationship type, id or key of its end) of a memory."""
    found = rows(
        server,
        "MATCH (m:Memory {key: $key})-[r]->(n) RETURN type(r), coalesce(n.id, n.key)",
        key=key,
    )
    return {(kind, end) for kind, end in found}
