"""A running engine on the chosen backend, and plain clients of its servers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from orchestrata_memory import open_engine
from orchestrata_memory.bench.raw import RawServers, raw_servers
from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.config.settings import (
    GraphSettings,
    MemoryEngineSettings,
    RedisSettings,
)
from orchestrata_memory.embedded.servers import EmbeddedServers
from orchestrata_memory.errors import MemoryConfigurationError, MemoryValidationError
from orchestrata_memory.models import MemoryContext

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

RUNNER = "BENCH:RUNNER"
GRAPH_SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a bench runs.

    Attributes:
        backend: In words, such as ``redis 7.0.15 (fsync always) + Neo4j/5.26.12``.
        temporary: The servers and all their data go when the bench ends.
    """

    engine: MemoryEngine
    raw: RawServers
    settings: MemoryEngineSettings
    backend: str
    temporary: bool

    def caller(self, session_id: str, **more: str | None) -> MemoryContext:
        """The bench's own Volk in a session."""
        return MemoryContext(volk_id=RUNNER, session_id=session_id, **more)


def chosen_settings(
    backend: str, settings: MemoryEngineSettings, environ: Mapping[str, str]
) -> MemoryEngineSettings:
    """The settings for a ``--backend``.

    Args:
        backend: ``embedded``, ``configured`` or a URI such as ``neo4j://127.0.0.1:7687``, whose
            login comes from the URI or from ``NEO4J_USERNAME`` and ``NEO4J_PASSWORD``.
        settings: As configured.
        environ: The environment.

    Raises:
        MemoryValidationError: No such backend.
        MemoryConfigurationError: ``configured``, but no server is.
    """
    governance = settings.governance.model_copy(
        update={"volks": {**settings.governance.volks, RUNNER: ("team_lead",)}}
    )
    settings = settings.model_copy(update={"governance": governance})
    if backend == "embedded":
        return settings.model_copy(update={"redis": RedisSettings(), "graph": GraphSettings()})
    if backend == "configured":
        if settings.redis.url is None and settings.graph.uri is None:
            raise MemoryConfigurationError(
                "--backend configured: neither redis.url nor graph.uri is configured"
            )
        return settings
    if urlsplit(backend).scheme not in GRAPH_SCHEMES:
        raise MemoryValidationError("--backend", "embedded, configured or a URI like neo4j://host")
    password = environ.get("NEO4J_PASSWORD")
    graph = GraphSettings(
        uri=backend,
        username=environ.get("NEO4J_USERNAME", "neo4j"),
        password=SecretStr(password) if password else None,
        database=environ.get("NEO4J_DATABASE"),
    )
    return settings.model_copy(update={"redis": RedisSettings(), "graph": graph})


@asynccontextmanager
async def environment(
    backend: str,
    settings: MemoryEngineSettings,
    *,
    data_dir: Path | None = None,
    promote: bool = True,
) -> AsyncIterator[Environment]:
    """Run an engine on a backend; what is not configured is embedded and temporary.

    Args:
        backend: See `chosen_settings`.
        settings: As configured.
        data_dir: Keeps the data of embedded servers; a temporary folder when omitted.
        promote: Whether searches copy what they match from cold to hot.
    """
    chosen = chosen_settings(backend, settings, os.environ)
    if not promote:
        search = chosen.search.model_copy(update={"promote": False})
        chosen = chosen.model_copy(update={"search": search})
    async with AsyncExitStack() as stack:
        if data_dir is None:
            folder = tempfile.TemporaryDirectory(
                prefix="orchestrata-memory-", ignore_cleanup_errors=True
            )
            data_dir = Path(stack.enter_context(folder))
        embedded = chosen.embedded.model_copy(update={"data_dir": data_dir, "linger_seconds": 0.0})
        chosen = chosen.model_copy(update={"embedded": embedded})
        redis_url, graph = await _addresses(chosen, stack)
        engine = await stack.enter_async_context(open_engine(chosen))
        raw = await stack.enter_async_context(raw_servers(redis_url, graph))
        yield Environment(
            engine=engine,
            raw=raw,
            settings=chosen,
            backend=await describe(raw),
            temporary=chosen.redis.url is None and chosen.graph.uri is None,
        )


async def _addresses(
    settings: MemoryEngineSettings, stack: AsyncExitStack
) -> tuple[str, GraphAddress]:
    """Where the servers are; embedded ones are started here and joined by the engine."""
    own_redis, own_graph = settings.redis.url is None, settings.graph.uri is None
    servers = EmbeddedServers(settings=settings.embedded, redis=own_redis, graph=own_graph)
    stack.push_async_callback(servers.stop, wait=True)
    addresses = await servers.start()
    url = settings.redis.url
    redis_url = addresses.redis_url if url is None else url.get_secret_value()
    graph = addresses.graph if own_graph else GraphAddress.from_settings(settings.graph)
    assert redis_url is not None  # noqa: S101 - either configured or embedded
    assert graph is not None  # noqa: S101 - as above
    return redis_url, graph


async def describe(raw: RawServers) -> str:
    """The servers' own names for themselves."""
    info = await raw.redis.info("server")
    valkey = info.get("valkey_version")
    product = f"Valkey {valkey}" if valkey else f"Redis {info.get('redis_version')}"
    config = await raw.redis.config_get("append*")
    log = {_text(name): _text(value) for name, value in config.items()}
    fsync = log.get("appendfsync") if log.get("appendonly") == "yes" else "off"
    agent = (await raw.driver.get_server_info()).agent
    return f"{product} (append-only file {fsync}) + {agent}"


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
