"""Dialects: what differs between the graphs that speak Cypher over Bolt."""

from __future__ import annotations

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.cold.dialect.arcadedb import ArcadeDialect
from orchestrata_memory.cold.dialect.arcadedb_http import ArcadeHttp
from orchestrata_memory.cold.dialect.base import Dialect, Row, SearchIndexes
from orchestrata_memory.cold.dialect.neo4j import Neo4jDialect

__all__ = ["Dialect", "Row", "SearchIndexes", "dialect_for"]


def dialect_for(address: GraphAddress, agent: str, *, timeout: float) -> Dialect:
    """The configured dialect, or the one the server's agent string names.

    Args:
        address: The server.
        agent: Its agent string, such as ``Neo4j/5.26.12``.
        timeout: Seconds for one HTTP request of a dialect that needs one.
    """
    name = address.dialect
    if name == "auto":
        name = "arcadedb" if "arcadedb" in agent.lower() else "neo4j"
    if name == "neo4j":
        return Neo4jDialect()
    http = None
    if address.http_url is not None:
        http = ArcadeHttp(address.http_url, address.username, address.password, timeout=timeout)
    return ArcadeDialect(http)
