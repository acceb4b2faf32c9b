"""The servers of one test run, each started when first asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tests.servers.graph import ArcadeServer, GraphServer
from tests.servers.neo4j_source import NoNeo4jError, obtain_neo4j
from tests.servers.process import ServerStartError
from tests.servers.redis import RedisServer


class ServerPool:
    """Starts lazily, stops all at the end.

    Attributes:
        neo4j_problem: Why there is no Neo4j, once it is known.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._redis: RedisServer | None = None
        self._graphs: dict[str, GraphServer] = {}
        self.neo4j_problem: str | None = None

    def redis(self) -> RedisServer:
        if self._redis is None:
            self._redis = RedisServer(self._folder / "redis").start()
        return self._redis

    def graph(self, kind: Literal["arcadedb", "neo4j"]) -> GraphServer:
        """The graph server of a kind.

        Raises:
            NoNeo4jError: No Neo4j can be had.
        """
        if kind not in self._graphs:
            self._graphs[kind] = self._make(kind)
        return self._graphs[kind]

    def stop(self) -> None:
        for server in (self._redis, *self._graphs.values()):
            if server is not None:
                server.stop()

    def _make(self, kind: Literal["arcadedb", "neo4j"]) -> GraphServer:
        if kind == "arcadedb":
            return ArcadeServer(self._folder / "arcadedb").start()
        if self.neo4j_problem is not None:
            raise NoNeo4jError(self.neo4j_problem)
        try:
            return obtain_neo4j(self._folder / "neo4j").start()
        except (NoNeo4jError, ServerStartError) as error:
            self.neo4j_problem = str(error)
            raise NoNeo4jError(self.neo4j_problem) from error
