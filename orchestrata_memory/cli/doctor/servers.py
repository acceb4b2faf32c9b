"""Checks of the servers: the configured ones are asked, of the embedded ones the programs."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestrata_memory.cli.doctor.check import Check, fail, ok, said, warn
from orchestrata_memory.config.settings import EmbeddedSettings, GraphSettings, RedisSettings
from orchestrata_memory.errors import MemoryConfigurationError

OLDEST_REDIS = 7
OLDEST_NEO4J = (5, 26)
_PATIENCE_SECONDS = 5.0


async def redis(settings: RedisSettings, embedded: EmbeddedSettings) -> Check:
    """The hot tier's server."""
    if settings.url is None:
        return _embedded_redis(embedded)
    from redis.exceptions import AuthenticationError, RedisError

    fix = "check runtime.memory_engine.redis.url"
    try:
        info, config = await _ask_redis(settings)
    except AuthenticationError as error:
        return fail("Redis", said(error), f"{fix}: the password is wrong or missing")
    except (RedisError, OSError, ValueError) as error:
        return fail("Redis", f"cannot be reached: {said(error)}", fix)
    return judge_redis(info, config)


async def _ask_redis(settings: RedisSettings) -> tuple[dict[str, Any], dict[str, str]]:
    from redis.asyncio import Redis
    from redis.asyncio.sentinel import Sentinel

    assert settings.url is not None  # noqa: S101 - the caller looked
    url = settings.url.get_secret_value()
    patience: Any = {
        "socket_timeout": _PATIENCE_SECONDS,
        "socket_connect_timeout": _PATIENCE_SECONDS,
    }
    client: Any = Redis.from_url(url, decode_responses=True, **patience)
    try:
        if settings.sentinel_master is not None:
            options = client.connection_pool.connection_kwargs
            sentinel: Any = Sentinel(  # type: ignore[no-untyped-call]
                [(options["host"], options.get("port", 26379))], **patience
            )
            await client.aclose()
            client = sentinel.master_for(settings.sentinel_master, decode_responses=True)
        info = await client.info()
        config = await client.config_get("append*", "maxmemory-policy")
        return info, config
    finally:
        await client.aclose()


def judge_redis(info: dict[str, Any], config: dict[str, str]) -> Check:
    """What a Redis says of itself: version, mode, eviction, durability."""
    product = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    policy = config.get("maxmemory-policy", str(info.get("maxmemory_policy", "noeviction")))
    fsync = config.get("appendfsync", "unknown") if config.get("appendonly") == "yes" else "off"
    detail = f"{product} {version}, eviction {policy}, append-only file {fsync}"
    if int(version.split(".", maxsplit=1)[0]) < OLDEST_REDIS:
        return fail("Redis", detail, f"use Redis {OLDEST_REDIS} or newer, or Valkey")
    if info.get("cluster_enabled") or info.get("redis_mode") == "cluster":
        return fail("Redis", f"{detail}, a cluster", "use a single server or Sentinel")
    if policy.startswith("allkeys"):
        return fail("Redis", detail, "it may drop memories: CONFIG SET maxmemory-policy noeviction")
    if policy.startswith("volatile"):
        return warn("Redis", detail, "it may drop entries early: use maxmemory-policy noeviction")
    if fsync != "always":
        fix = "a crash may lose the last writes: CONFIG SET appendonly yes, appendfsync always"
        return warn("Redis", detail, fix)
    return ok("Redis", detail)


def _embedded_redis(embedded: EmbeddedSettings) -> Check:
    from orchestrata_memory.embedded.layout import PartFolder, default_data_dir
    from orchestrata_memory.embedded.programs import find_redis_server

    folder = PartFolder(embedded.data_dir or default_data_dir(), "redis")
    try:
        program = find_redis_server(folder.data)
    except MemoryConfigurationError as error:
        return fail("Redis", "no server program", said(error))
    detail = f"embedded: {program}, append-only file {embedded.fsync}"
    if embedded.fsync != "always":
        return warn("Redis", detail, "a crash may lose the last writes: set embedded.fsync: always")
    return ok("Redis", detail)


async def graph(settings: GraphSettings) -> Check:
    """The cold tier's server."""
    if settings.uri is None:
        return _embedded_graph()
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    fix = "check runtime.memory_engine.graph.uri"
    try:
        products = await _ask_graph(settings)
    except AuthError as error:
        return fail("graph", said(error), "check graph.username and graph.password")
    except (Neo4jError, DriverError, OSError, ValueError) as error:
        return fail("graph", f"cannot be reached: {said(error)}", fix)
    return judge_graph(*products)


async def _ask_graph(settings: GraphSettings) -> tuple[str, str]:
    """The server's own name for itself, and its edition."""
    from neo4j import AsyncGraphDatabase

    assert settings.uri is not None  # noqa: S101 - the caller looked
    password = settings.password.get_secret_value() if settings.password else None
    auth = (settings.username, password) if password else None
    async with (
        asyncio.timeout(2 * _PATIENCE_SECONDS),
        AsyncGraphDatabase.driver(
            settings.uri, auth=auth, connection_timeout=_PATIENCE_SECONDS
        ) as driver,
        driver.session(database=settings.database) as session,
    ):
        await (await session.run("RETURN 1")).consume()
        info = await driver.get_server_info()
    return info.agent, ".".join(map(str, info.protocol_version))


def judge_graph(agent: str, protocol: str) -> Check:
    """What a graph server says of itself: ``Neo4j/5.26.12`` or another product."""
    product, _, version = agent.partition("/")
    dialect = "arcadedb" if "arcade" in agent.lower() else "neo4j"
    detail = f"{product} {version}, dialect {dialect}, Bolt {protocol}"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if dialect == "neo4j" and numbers and numbers < OLDEST_NEO4J:
        return fail("graph", detail, "use Neo4j 5.26 LTS or newer")
    return ok("graph", detail)


def _embedded_graph() -> Check:
    from orchestrata_memory.embedded.programs import find_arcadedb

    try:
        install = find_arcadedb()
    except MemoryConfigurationError as error:
        return fail("graph", "no server program", said(error))
    return ok("graph", f"embedded: ArcadeDB with its own Java ({install.java})")
