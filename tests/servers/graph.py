"""Graph servers as the tests see them: ArcadeDB from its wheel, or a real Neo4j."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal

import neo4j
from neo4j.exceptions import DriverError, Neo4jError

from orchestrata_memory.embedded.commands import (
    GRAPH_DATABASE,
    GRAPH_USER,
    ArcadeOptions,
    arcadedb_arguments,
    write_private,
)
from orchestrata_memory.embedded.programs import find_arcadedb
from tests.servers.process import ServerProcess, ServerStartError, free_port

START_SECONDS = 120.0
ATTEMPTS = 4
DELETE_BATCH = 2000


class GraphServer(ABC):
    """A graph server; data and port stay over `kill` and `start`."""

    dialect: Literal["neo4j", "arcadedb"]
    username: str
    password: str
    database: str
    http_url: str | None = None
    killable = True

    @property
    @abstractmethod
    def uri(self) -> str:
        """Bolt address."""

    @abstractmethod
    def start(self) -> GraphServer:
        """Start, or start again on the same data."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL."""

    @abstractmethod
    def stop(self) -> None:
        """Stop for good."""

    @property
    def running(self) -> bool:
        return True

    @property
    def pid(self) -> int:
        """Process id, where the server is one of ours."""
        raise NotImplementedError

    def driver(self) -> neo4j.Driver:
        """A blocking driver."""
        auth = (self.username, self.password) if self.password else None
        return neo4j.GraphDatabase.driver(self.uri, auth=auth, connection_timeout=5)

    def answers(self) -> bool:
        try:
            with self.driver() as driver, driver.session(database=self.database) as session:
                session.run("RETURN 1").consume()  # not retried, unlike `execute_query`
        except (DriverError, Neo4jError, OSError):
            return False
        return True

    def count_nodes(self) -> int:
        with self.driver() as driver:
            rows = driver.execute_query(
                "MATCH (n) RETURN count(n) AS n", database_=self.database
            ).records
        return int(rows[0]["n"])

    def wipe(self) -> None:
        """Delete all nodes, in batches; schema stays."""
        with self.driver() as driver:
            while True:
                rows = driver.execute_query(
                    "MATCH (n) WITH n LIMIT $batch DETACH DELETE n RETURN count(*) AS n",
                    batch=DELETE_BATCH,
                    database_=self.database,
                ).records
                if not rows or int(rows[0]["n"]) < DELETE_BATCH:
                    return


class ProcessGraphServer(GraphServer):
    """A graph server that is a process of the test run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: ServerProcess | None = None
        self.port = 0

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> GraphServer:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.port:
            self._start_on(self.port)
            return self
        for attempt in range(ATTEMPTS):
            try:
                self._start_on(free_port())
            except ServerStartError:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return self
        raise AssertionError

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    @abstractmethod
    def make_process(self, port: int) -> ServerProcess:
        """The process that serves Bolt on a port."""

    def _start_on(self, port: int) -> None:
        restarting = bool(self.port)
        self._process = self.make_process(port)
        self._process.start()
        self.port = port
        try:
            self._process.wait_until(self._ready, START_SECONDS)
        except ServerStartError:
            self._process.stop()
            self.port = port if restarting else 0
            raise

    def _ready(self) -> bool:
        assert self._process is not None
        if "Unable to listen" in self._process.log_text:
            raise ServerStartError("the port was taken in the meantime")
        return self.answers()


class ArcadeServer(ProcessGraphServer):
    """ArcadeDB."""

    dialect = "arcadedb"
    username = GRAPH_USER
    database = GRAPH_DATABASE

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.password = secrets.token_urlsafe(18)
        self._http_port = 0

    def make_process(self, port: int) -> ServerProcess:
        self._http_port = self._http_port or free_port()
        self.http_url = f"http://127.0.0.1:{self._http_port}"
        install = find_arcadedb()
        data = self._folder / "data"
        data.mkdir(exist_ok=True)
        arguments = self._folder / "java.args"
        options = ArcadeOptions(
            folder=data, bolt_port=port, http_port=self._http_port, password=self.password
        )
        write_private(arguments, arcadedb_arguments(install, options))
        return ServerProcess([str(install.java), f"@{arguments}"], self._folder / "arcadedb.log")


class LocalNeo4j(ProcessGraphServer):
    """Neo4j by a start script that takes a folder and a port."""

    dialect = "neo4j"
    username = "neo4j"
    password = ""
    database = "neo4j"

    def __init__(self, folder: Path, script: Path) -> None:
        super().__init__(folder)
        self._script = script

    def make_process(self, port: int) -> ServerProcess:
        command = [str(self._script), str(self._folder / "data"), str(port)]
        return ServerProcess(command, self._folder / "neo4j.log")


class GivenNeo4j(GraphServer):
    """A Neo4j somebody else runs; never stopped by us, and wiped only when it began empty."""

    dialect = "neo4j"
    killable = False

    def __init__(self, uri: str, username: str, password: str, database: str) -> None:
        self._uri = uri
        self.username = username
        self.password = password
        self.database = database

    @property
    def uri(self) -> str:
        return self._uri

    def start(self) -> GraphServer:
        return self

    def kill(self) -> None:
        raise NotImplementedError("this Neo4j is not ours to kill")

    def stop(self) -> None:
        self.wipe()
