"""What the server is: the checks at start, and health."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from redis import exceptions as driver

from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryEngineError,
    MemoryStorageError,
    MemoryUnavailableError,
)
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.connection import Connection
from orchestrata_memory.hot.failures import AUTHENTICATION_CODES, PART, code_of
from orchestrata_memory.interfaces import HealthStatus, PartHealth

_OLDEST = 7
_NEARLY_FULL = 0.9
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What the server says of itself.

    Attributes:
        name: ``redis`` or ``valkey``.
        version: As the server of that name counts.
        durability: ``always``, ``everysec`` or ``none`` (also where the system decides when to
            flush); ``unknown`` where CONFIG is not allowed.
        eviction: ``maxmemory-policy``.
        used_memory: Bytes.
        max_memory: Bytes; 0: no limit.
    """

    name: str
    version: str
    cluster: bool
    writable: bool
    durability: str
    eviction: str
    used_memory: int
    max_memory: int


async def ask(redis: Connection) -> ServerFacts:
    """Facts of the server, in two round trips."""
    info: dict[str, Any] = await redis.command("INFO")
    name = str(info.get("server_name", "redis"))
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    return ServerFacts(
        name=name,
        version=version,
        cluster=bool(int(info.get("cluster_enabled", 0))),
        writable=info.get("role", "master") == "master",
        durability=await _durability(redis, aof=bool(int(info.get("aof_enabled", 0)))),
        eviction=str(info.get("maxmemory_policy", "noeviction")),
        used_memory=int(info.get("used_memory", 0)),
        max_memory=int(info.get("maxmemory", 0)),
    )


async def _durability(redis: Connection, *, aof: bool) -> str:
    if not aof:
        return "none"
    try:
        answer = await redis.command("CONFIG", "GET", "appendfsync")
    except (MemoryStorageError, MemoryUnavailableError):
        return "unknown"  # managed servers do not allow CONFIG
    values = answer.values() if isinstance(answer, dict) else answer[1:]
    value = next((item.decode() if isinstance(item, bytes) else str(item) for item in values), "")
    return "none" if value == "no" else value or "unknown"


async def check(redis: Connection) -> ServerFacts:
    """Facts of the server, if it can be used.

    Raises:
        MemoryConfigurationError: Too old, a cluster, one that may evict keys, a wrong password.
        MemoryUnavailableError: Out of reach, or a read-only replica.
    """
    try:
        facts = await ask(redis)
    except MemoryUnavailableError as error:
        cause = error.__cause__
        if isinstance(cause, driver.RedisError) and code_of(cause) in AUTHENTICATION_CODES:
            raise MemoryConfigurationError(
                "redis.url: the server refused the user name or password, or asks for one"
            ) from cause
        raise
    if facts.cluster:
        raise MemoryConfigurationError(
            "redis.url: the server runs as a cluster, which is not supported yet; use one server, "
            "or Sentinel"
        )
    major = facts.version.split(".", 1)[0]
    if facts.name == "redis" and (not major.isdigit() or int(major) < _OLDEST):
        raise MemoryConfigurationError(
            f"redis.url: Redis {facts.version} is too old; Redis 7 or newer, or Valkey, is needed"
        )
    if facts.eviction.startswith("allkeys-"):
        raise MemoryConfigurationError(
            f"redis.url: the server's maxmemory-policy is {facts.eviction}, so it may drop "
            "memories that are stored nowhere else; set it to noeviction"
        )
    if not facts.writable:
        raise MemoryUnavailableError(
            PART, "it is a read-only replica; point the engine at the master"
        )
    return facts


async def report(redis: Connection, limit: int) -> PartHealth:
    """Health of the hot tier; never raises an error of the engine."""
    try:
        facts = await ask(redis)
        sizes = await redis.run("sizes")
        refusal = await _refusal_of_writes(redis)
    except MemoryEngineError as error:
        return PartHealth(status=HealthStatus.UNHEALTHY, message=str(error))
    outbox, oldest, dead, audit = (int(size) for size in sizes)
    age = max(0.0, time.time() - oldest / _MILLISECONDS) if oldest else 0.0
    details: dict[str, Any] = {
        "server": f"{facts.name} {facts.version}",
        "durability": facts.durability,
        "eviction": facts.eviction,
        "used_memory_bytes": facts.used_memory,
        "max_memory_bytes": facts.max_memory,
        "lag_records": outbox,
        "lag_seconds": round(age, 3),
        "dead_letters": dead,
        "audit_records": audit,
        "outbox_limit": limit,
    }
    problems, status = _judge(facts, outbox=outbox, dead=dead, limit=limit)
    if refusal:
        problems, status = [refusal, *problems], HealthStatus.UNHEALTHY
    return PartHealth(status=status, message="; ".join(problems), details=details)


async def _refusal_of_writes(redis: Connection) -> str:
    """Why the server takes no writes now, or nothing.

    Asked by a write that changes nothing: there is never a list of that name to push to.
    """
    try:
        await redis.command("LPUSHX", keys.PROBE, "")
    except MemoryEngineError as error:
        return str(error)
    return ""


def _judge(
    facts: ServerFacts, *, outbox: int, dead: int, limit: int
) -> tuple[list[str], HealthStatus]:
    refusing = []
    lacking = []
    notes = []
    if not facts.writable:
        refusing.append("the server is a read-only replica")
    if outbox + dead >= limit:
        refusing.append(f"the outbox holds its limit of {limit} records: stores are refused")
    if dead:
        lacking.append(f"{dead} dead letters wait: see `orchestrata-memory dead-letters`")
    if facts.eviction.startswith("volatile-"):
        lacking.append(
            f"maxmemory-policy is {facts.eviction}: memories may leave hot before their time; "
            "set it to noeviction"
        )
    if facts.max_memory and facts.used_memory >= facts.max_memory * _NEARLY_FULL:
        lacking.append("the server's memory is nearly full")
    if facts.durability != "always":
        notes.append(
            f"durability is {facts.durability}: a crash of the server's machine may lose the last "
            "acknowledged writes; run it with appendonly yes and appendfsync always"
        )
    if refusing:
        status = HealthStatus.UNHEALTHY
    else:
        status = HealthStatus.DEGRADED if lacking else HealthStatus.HEALTHY
    return refusing + lacking + notes, status
