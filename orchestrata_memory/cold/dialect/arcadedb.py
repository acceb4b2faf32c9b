"""ArcadeDB 26.10 and newer, over its Bolt plugin.

Its Cypher makes no vector and no full-text index, so those are made by SQL over its HTTP port.
Concurrent transactions do not wait for each other there: the later one fails and is run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from orchestrata_memory.cold.dialect.arcadedb_http import ArcadeHttp
from orchestrata_memory.cold.dialect.base import RunCypher, SearchIndexes
from orchestrata_memory.cold.failures import code_of
from orchestrata_memory.cold.queries import statements
from orchestrata_memory.errors import MemoryConfigurationError

_INDEXES = SearchIndexes(vector="Memory[embedding]", terms="Memory[terms]")

_COLLISIONS = frozenset(
    {
        "Neo.ClientError.Schema.ConstraintValidationFailed",
        "Neo.ClientError.Statement.EntityNotFound",
        "Neo.ClientError.Transaction.TransactionNotFound",
        "Neo.TransientError.Transaction.DeadlockDetected",
        "Neo.TransientError.Transaction.Outdated",
        "Neo.TransientError.General.TransientError",
    }
)


class ArcadeDialect:
    """ArcadeDB's ways.

    Args:
        http: Its HTTP port; None: the indexes must be there already.
    """

    name = "arcadedb"
    default_database = "memory"

    def __init__(self, http: ArcadeHttp | None) -> None:
        self._http = http

    async def prepare(self, run: RunCypher, *, database: str, dimension: int) -> SearchIndexes:
        """See `Dialect.prepare`."""
        for statement in statements("schema"):
            await run(statement, {})
        if self._http is None:
            raise MemoryConfigurationError(
                "graph.http_url: ArcadeDB makes its search indexes over HTTP only; set it, such "
                "as http://127.0.0.1:2480"
            )
        await asyncio.to_thread(_make_search_indexes, self._http, database, dimension)
        return _INDEXES

    def is_collision(self, error: BaseException) -> bool:
        """See `Dialect.is_collision`."""
        return code_of(error) in _COLLISIONS


def _make_search_indexes(http: ArcadeHttp, database: str, dimension: int) -> None:
    present = _vector_index(http, database)
    if present is not None:
        _check_vector(present, dimension)
    for statement in statements("schema_arcadedb", "sql"):
        if present is None or "LSM_VECTOR" not in statement:
            http.command(database, statement.replace("/*dimension*/", str(int(dimension))))
    made = _vector_index(http, database)
    if made is None:
        raise MemoryConfigurationError("the graph made no vector index on Memory.embedding")
    _check_vector(made, dimension)


def _vector_index(http: ArcadeHttp, database: str) -> Mapping[str, Any] | None:
    rows = http.query(database, "SELECT indexes FROM schema:types WHERE name = 'Memory'")
    for row in rows:
        for index in row.get("indexes", ()):
            if index.get("type") == "LSM_VECTOR" and index.get("properties") == ["embedding"]:
                return dict(index)
    return None


def _check_vector(index: Mapping[str, Any], dimension: int) -> None:
    name, present = index.get("name"), index.get("dimensions")
    if present != dimension:
        raise MemoryConfigurationError(
            f"the graph's vector index {name!r} holds vectors of {present} dimensions, the "
            f"configured model gives {dimension}: configure the model that made them, or run "
            f"the SQL command DROP INDEX `{name}` and start with embedding.replace_model: true "
            "to have everything embedded anew"
        )
    if not str(index.get("scoring", "COSINE")).upper().endswith("COSINE"):
        raise MemoryConfigurationError(
            f"the graph's vector index {name!r} does not compare by cosine: drop it and start again"
        )
