"""What the graph holds of one history, read past the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.servers.graph import GraphServer

if TYPE_CHECKING:
    from tests.properties.world import World

NODES = """
MATCH (m:Memory {project_id: $project})
RETURN m.key AS key, m.version AS version, properties(m) AS properties
"""
EDGES = """
MATCH (m:Memory {project_id: $project})-[r]->(n)
RETURN m.key AS key, type(r) AS type, coalesce(n.key, n.id) AS target
"""
GUARDS = """
MATCH (g:MemoryVersion) WHERE g.key IN $keys AND g.version IS NOT NULL
RETURN g.key AS key, g.version AS version, g.deleted AS deleted
"""


@dataclass(frozen=True)
class GraphState:
    """Memories with their versions, all properties, relationships and guards, each once."""

    memories: dict[str, int]
    properties: list[str]
    edges: list[tuple[str, str, str]]
    guards: list[tuple[str, int, bool]]


def graph_state(server: GraphServer, world: World) -> GraphState:
    """Read it."""
    with server.driver() as driver:

        def rows(text: str) -> list[dict[str, object]]:
            found = driver.execute_query(
                text, project=world.project, keys=world.keys, database_=server.database
            )
            return [record.data() for record in found.records]

        nodes = rows(NODES)
        memories = {str(row["key"]): int(str(row["version"])) for row in nodes}
        assert len(memories) == len(nodes), "a memory is there twice"
        edges = sorted((str(r["key"]), str(r["type"]), str(r["target"])) for r in rows(EDGES))
        assert len(edges) == len(set(edges)), "a relationship is there twice"
        guards = [(str(r["key"]), int(str(r["version"])), bool(r["deleted"])) for r in rows(GUARDS)]
        assert len({key for key, *_ in guards}) == len(guards), "a guard is there twice"
    properties = sorted(repr(sorted(dict(row["properties"]).items())) for row in nodes)  # type: ignore[call-overload]
    return GraphState(memories, properties, edges, sorted(guards))
