"""Where a graph server is and how to log in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import unquote, urlsplit

from orchestrata_memory.config.settings import GraphSettings
from orchestrata_memory.errors import MemoryConfigurationError

GraphDialectName = Literal["auto", "neo4j", "arcadedb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphAddress:
    """A graph server's address.

    Attributes:
        uri: ``bolt://``, ``neo4j://`` or their TLS variants.
        dialect: ``auto`` asks the server.
        username: Login name.
        password: Never part of the text form; empty: no login.
        database: None: the server's default.
        http_url: ArcadeDB's HTTP address, needed to create its indexes; None for Neo4j.
    """

    uri: str
    dialect: GraphDialectName = "auto"
    username: str = ""
    password: str = field(default="", repr=False)
    database: str | None = None
    http_url: str | None = None

    @classmethod
    def from_settings(cls, settings: GraphSettings) -> GraphAddress:
        """The configured server.

        A name and a password inside the URI count where the settings give no password, and leave
        the URI, so that no message shows them.

        Raises:
            MemoryConfigurationError: No URI is configured.
        """
        if settings.uri is None:
            raise MemoryConfigurationError(
                "graph.uri: no graph is configured; set it, such as bolt://127.0.0.1:7687, "
                "or use the embedded server"
            )
        secret = settings.password
        return _without_userinfo(
            cls(
                uri=settings.uri,
                dialect=settings.dialect,
                username=settings.username,
                password=secret.get_secret_value() if secret is not None else "",
                database=settings.database,
                http_url=settings.http_url,
            )
        )


def _without_userinfo(address: GraphAddress) -> GraphAddress:
    parts = urlsplit(address.uri)
    if "@" not in parts.netloc:
        return address
    host = parts.netloc.rpartition("@")[2]
    bare = replace(address, uri=parts._replace(netloc=host).geturl())
    if address.password or not parts.password:
        return bare
    return replace(
        bare,
        username=unquote(parts.username or address.username),
        password=unquote(parts.password),
    )
