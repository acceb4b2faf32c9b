"""Neo4j in a container, for those who have Docker."""

from __future__ import annotations

import time

from testcontainers.neo4j import Neo4jContainer

from tests.servers.graph import GraphServer
from tests.servers.process import free_port

BOLT_PORT = 7687


class ContainerNeo4j(GraphServer):
    """A container with a fixed host port, so that a restart keeps the address."""

    dialect = "neo4j"
    username = "neo4j"
    password = "orchestrata-tests"
    database = "neo4j"

    def __init__(self, image: str) -> None:
        self._port = free_port()
        self._container = Neo4jContainer(image, password=self.password).with_bind_ports(
            BOLT_PORT, self._port
        )
        self._created = False

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self._port}"

    def start(self) -> GraphServer:
        if self._created:
            self._container.get_wrapped_container().start()
            self._wait()
        else:
            self._container.start()
            self._created = True
        return self

    def kill(self) -> None:
        self._container.get_wrapped_container().kill()

    def stop(self) -> None:
        self._container.stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + 120
        while not self.answers():
            if time.monotonic() > deadline:
                raise TimeoutError("Neo4j did not come back")
            time.sleep(0.5)
