"""Where a graph server is and how to log in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GraphDialectName = Literal["auto", "neo4j", "arcadedb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphAddress:
    """A graph server's address.

    Attributes:
        uri: ``bolt://``, ``neo4j://`` or their TLS variants.
        dialect: ``auto`` asks the server.
        username: Empty: no login.
        password: Never part of the text form.
        database: None: the server's default.
        http_url: ArcadeDB's HTTP address, needed to create its indexes; None for Neo4j.
    """

    uri: str
    dialect: GraphDialectName = "auto"
    username: str = ""
    password: str = field(default="", repr=False)
    database: str | None = None
    http_url: str | None = None
