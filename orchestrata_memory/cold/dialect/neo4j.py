"""Neo4j 5.26 and newer."""

from __future__ import annotations

from typing import Any

from orchestrata_memory.cold.dialect.base import Row, RunCypher, SearchIndexes
from orchestrata_memory.cold.failures import code_of
from orchestrata_memory.cold.queries import query, statements
from orchestrata_memory.errors import MemoryConfigurationError

_WAIT_SECONDS = 300

_COLLISIONS = frozenset(
    {
        "Neo.ClientError.Schema.ConstraintValidationFailed",
        "Neo.ClientError.Statement.EntityNotFound",
    }
)
_SCHEMA_RACES = frozenset(
    {
        "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
        "Neo.ClientError.Schema.ConstraintAlreadyExists",
        "Neo.ClientError.Schema.IndexAlreadyExists",
    }
)


class Neo4jDialect:
    """Neo4j's ways.

    Everything is done by Cypher. Full-text indexes stay consistent with each commit, because an
    eventually consistent one would miss what was just written.
    """

    name = "neo4j"
    default_database = "neo4j"

    async def prepare(self, run: RunCypher, *, database: str, dimension: int) -> SearchIndexes:  # noqa: ARG002
        """See `Dialect.prepare`."""
        for statement in statements("schema"):
            await self._create(run, statement)
        for statement in statements("schema_neo4j"):
            await self._create(run, statement.replace("/*dimension*/", str(int(dimension))))
        await run(query("wait_for_indexes"), {"seconds": _WAIT_SECONDS})
        return _found(await run(query("show_indexes"), {}), dimension)

    async def _create(self, run: RunCypher, statement: str) -> None:
        try:
            await run(statement, {})
        except Exception as error:
            # Two engines may open one database at the same moment. An equal rule is fine,
            # whoever made it; one that does not serve is found out below.
            if code_of(error) in _SCHEMA_RACES and "CONSTRAINT" not in statement:
                return
            if code_of(error) in _SCHEMA_RACES:
                raise MemoryConfigurationError(
                    "the graph holds an index where a uniqueness constraint is needed "
                    f"({code_of(error)}): drop the plain index on the key of Memory, "
                    "MemoryVersion, MemoryAnchor or MemoryAudit and start again"
                ) from error
            raise

    def is_collision(self, error: BaseException) -> bool:
        """See `Dialect.is_collision`."""
        return code_of(error) in _COLLISIONS


def _found(rows: list[Row], dimension: int) -> SearchIndexes:
    """The indexes by what they cover: another component may have made them by other names."""
    vector = _by_property(rows, "VECTOR", "embedding")
    terms = _by_property(rows, "FULLTEXT", "terms")
    _check_vector(vector, dimension)
    analyzer = terms[1].get("fulltext.analyzer")
    if analyzer != "whitespace":
        raise MemoryConfigurationError(
            f"the full-text index {terms[0]!r} on Memory.terms uses the analyzer {analyzer!r} "
            "instead of 'whitespace': drop it and start again"
        )
    return SearchIndexes(vector=vector[0], terms=terms[0])


def _by_property(rows: list[Row], kind: str, name: str) -> tuple[str, dict[str, Any]]:
    for index_name, index_type, labels, properties, state, options in rows:
        if index_type == kind and labels == ["Memory"] and properties == [name]:
            if state != "ONLINE":
                raise MemoryConfigurationError(
                    f"the index {index_name!r} of the graph is {str(state).lower()}: drop it and "
                    "start again"
                )
            return str(index_name), dict(options.get("indexConfig", {}))
    raise MemoryConfigurationError(f"the graph has no {kind.lower()} index on Memory.{name}")


def _check_vector(vector: tuple[str, dict[str, Any]], dimension: int) -> None:
    name, config = vector
    present = config.get("vector.dimensions")
    if present != dimension:
        raise MemoryConfigurationError(
            f"the graph's vector index {name!r} holds vectors of {present} dimensions, the "
            f"configured model gives {dimension}: configure the model that made them, or run "
            f"`DROP INDEX {name}` and start with embedding.replace_model: true to have "
            "everything embedded anew"
        )
    similarity = str(config.get("vector.similarity_function", "")).lower()
    if similarity != "cosine":
        raise MemoryConfigurationError(
            f"the graph's vector index {name!r} compares by {similarity} instead of cosine: "
            f"run `DROP INDEX {name}` and start again"
        )
