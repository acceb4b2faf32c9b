"""How the embedded servers are called: a configuration file for Redis, an argument file for Java.

Both are files readable by their owner only, because a command line (and with it a password) can
be read by every user of the machine.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrata_memory.embedded.programs import ArcadeInstall

GRAPH_DATABASE = "memory"
GRAPH_USER = "root"
FULL_WAL_FLUSH = 2
"""ArcadeDB's `txWalFlush`: 0 no flush, 1 flush without metadata, 2 fsync at every commit."""

_OPENED_PACKAGES = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """What a Redis or Valkey is started with.

    Attributes:
        folder: Where its append-only file lives.
        log_file: None: standard output.
    """

    folder: Path
    port: int
    password: str
    fsync: Literal["always", "everysec"] = "always"
    log_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcadeOptions:
    """What an ArcadeDB is started with.

    Attributes:
        folder: Its root path: databases, users, logs.
        heap_mb: Upper bound of the Java heap, MiB; None: a quarter of the memory there is.
        wal_flush: See `FULL_WAL_FLUSH`.
    """

    folder: Path
    bolt_port: int
    http_port: int
    password: str
    heap_mb: int | None = None
    wal_flush: int = FULL_WAL_FLUSH


def redis_config(options: RedisOptions) -> str:
    """Text of a configuration file: loopback only, password, every write in the append-only file.

    No snapshots (the append-only file is the data), and no eviction: the engine's keys are not a
    cache.
    """
    lines = {
        "bind": "127.0.0.1",
        "port": str(options.port),
        "protected-mode": "yes",
        "requirepass": quoted(options.password),
        "dir": quoted(str(options.folder)),
        "appendonly": "yes",
        "appendfsync": options.fsync,
        "save": '""',
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "logfile": quoted(str(options.log_file or "")),
        "tcp-keepalive": "60",
        # A cut last record is a write that was not acknowledged; refusing to start would help
        # nobody.
        "aof-load-truncated": "yes",
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def arcadedb_arguments(install: ArcadeInstall, options: ArcadeOptions) -> str:
    """Text of a Java argument file that starts the server."""
    properties = {
        "arcadedb.server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "arcadedb.bolt.host": "127.0.0.1",
        "arcadedb.bolt.port": str(options.bolt_port),
        "arcadedb.server.rootPassword": options.password,
        "arcadedb.server.rootPath": str(options.folder),
        "arcadedb.server.defaultDatabases": f"{GRAPH_DATABASE}[{GRAPH_USER}]",
        "arcadedb.server.httpIncomingHost": "127.0.0.1",
        "arcadedb.server.httpIncomingPort": str(options.http_port),
        "arcadedb.txWalFlush": str(options.wal_flush),
        "arcadedb.server.mode": "production",
        "arcadedb.polyglotEngine.enabled": "false",
        "java.awt.headless": "true",
        "file.encoding": "UTF-8",
    }
    arguments = [
        "-XX:MaxRAMPercentage=25" if options.heap_mb is None else f"-Xmx{options.heap_mb}m",
        "-XX:+UseSerialGC",
        # A server out of memory answers wrongly and for ever; a new one answers.
        "-XX:+ExitOnOutOfMemoryError",
        *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED_PACKAGES),
        *(f"-D{name}={value}" for name, value in properties.items()),
        "-cp",
        f"{install.jars}/*",
        "com.arcadedb.server.ArcadeDBServer",
    ]
    return "".join(f"{quoted(argument)}\n" for argument in arguments)


def quoted(text: str) -> str:
    """A double-quoted word, as both Redis' and Java's files understand it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def write_private(path: Path, text: str) -> None:
    """Put a file in place at once, readable by its owner only."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
