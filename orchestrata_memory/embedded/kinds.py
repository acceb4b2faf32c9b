"""What differs between the embedded servers: how they are called, and when they are ready."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import neo4j
import redis.asyncio
from neo4j.exceptions import AuthError, ClientError, DriverError, Neo4jError
from redis.exceptions import RedisError

from orchestrata_memory.embedded.commands import (
    GRAPH_DATABASE,
    GRAPH_USER,
    ArcadeOptions,
    RedisOptions,
    arcadedb_arguments,
    redis_config,
    write_private,
)
from orchestrata_memory.embedded.layout import PartFolder
from orchestrata_memory.embedded.programs import find_arcadedb, find_redis_server
from orchestrata_memory.errors import MemoryConfigurationError

KEPT_EVENT_LOGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What an engine may ask of a server it starts.

    Attributes:
        linger_seconds: How long a server waits for a new user after the last has gone.
    """

    fsync: Literal["always", "everysec"] = "always"
    heap_mb: int | None = None
    linger_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where a server listens; the HTTP port is the graph's only."""

    main: int
    http: int = 0


class ServerKind(Protocol):
    """One kind of embedded server."""

    stop_seconds: float
    """How long a clean stop may take before SIGKILL."""

    start_seconds: float
    """How long it may take to load its data and answer."""

    port_taken: str
    """Text in its output that says the port is somebody else's."""

    def choose_ports(self) -> Ports:
        """Ports that are free at the moment."""
        ...

    def command(self, folder: PartFolder, password: str, ports: Ports) -> list[str]:
        """Write its configuration and say how to call it."""
        ...

    async def answers(self, password: str, ports: Ports) -> bool:
        """Whether it serves requests.

        Raises:
            MemoryConfigurationError: It serves, but not with this password.
        """
        ...


class RedisKind:
    """Redis or Valkey."""

    stop_seconds = 60.0
    start_seconds = 600.0
    port_taken = "Address already in use"

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    def choose_ports(self) -> Ports:
        return Ports(main=free_port())

    def command(self, folder: PartFolder, password: str, ports: Ports) -> list[str]:
        config = folder.path / "redis.conf"
        options = RedisOptions(
            folder=folder.data, port=ports.main, password=password, fsync=self._options.fsync
        )
        write_private(config, redis_config(options))
        return [str(find_redis_server(folder.data)), str(config)]

    async def answers(self, password: str, ports: Ports) -> bool:
        client = redis.asyncio.Redis(
            host="127.0.0.1", port=ports.main, password=password, socket_timeout=5
        )
        try:
            return bool(await client.ping())
        except redis.exceptions.AuthenticationError as error:
            raise MemoryConfigurationError("another Redis answers on the chosen port") from error
        except (RedisError, OSError):
            return False
        finally:
            await client.aclose()


class ArcadeKind:
    """ArcadeDB."""

    stop_seconds = 60.0
    start_seconds = 300.0
    port_taken = "Unable to listen"

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    def choose_ports(self) -> Ports:
        return Ports(main=free_port(), http=free_port())

    def command(self, folder: PartFolder, password: str, ports: Ports) -> list[str]:
        install = find_arcadedb()
        _prune_event_logs(folder.data / "log")
        arguments = folder.path / "java.args"
        options = ArcadeOptions(
            folder=folder.data,
            bolt_port=ports.main,
            http_port=ports.http,
            password=password,
            heap_mb=self._options.heap_mb,
        )
        write_private(arguments, arcadedb_arguments(install, options))
        return [str(install.java), f"@{arguments}"]

    async def answers(self, password: str, ports: Ports) -> bool:
        uri = f"bolt://127.0.0.1:{ports.main}"
        try:
            async with neo4j.AsyncGraphDatabase.driver(
                uri,
                auth=(GRAPH_USER, password),
                connection_timeout=5,
                max_connection_pool_size=1,
                max_transaction_retry_time=0,  # whoever asks, asks again
            ) as driver:
                await driver.execute_query("RETURN 1", database_=GRAPH_DATABASE)
        except AuthError as error:
            raise MemoryConfigurationError(
                "the graph's data was made with another password: put its file `password` back, "
                "or move the folder away to begin anew"
            ) from error
        except (ClientError, DriverError, Neo4jError, OSError):
            return False
        return True


def free_port() -> int:
    """A port of the loopback that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _prune_event_logs(folder: Path) -> None:
    """ArcadeDB opens a new event log at every start and keeps them all."""
    logs = sorted(folder.glob("server-event-log-*.jsonl"))
    for path in logs[:-KEPT_EVENT_LOGS]:
        path.unlink(missing_ok=True)
