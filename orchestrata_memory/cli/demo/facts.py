"""What the servers themselves hold, asked without the engine."""

from __future__ import annotations

from orchestrata_memory.bench.raw import RawServers
from orchestrata_memory.hot import keys


async def hot_entries(raw: RawServers, session_id: str) -> list[str]:
    """Redis keys of the entry hashes under a session, replicas included, sorted."""
    pattern = f"{keys.PREFIX}{keys.encode(session_id)}:*"
    found = [name async for name in raw.redis.scan_iter(match=pattern, count=500, _type="hash")]
    return sorted(name.decode() for name in found)


async def replica_entries(raw: RawServers, session_id: str) -> dict[str, int]:
    """Redis keys of the replicas under a session, and the seconds each has left."""
    replicas = {}
    for name in await hot_entries(raw, session_id):
        if await raw.redis.hget(name, "replica") == b"1":
            replicas[name] = int(await raw.redis.ttl(name))
    return replicas


async def shortest_ttl(raw: RawServers, names: list[str]) -> int:
    """Seconds until the first of the Redis keys expires; -1 when one never does."""
    return min([int(await raw.redis.ttl(name)) for name in names], default=-2)


async def outbox_length(raw: RawServers) -> int:
    """Records that the graph does not hold yet."""
    return int(await raw.redis.xlen(keys.OUTBOX))


async def graph_memories(raw: RawServers, session_id: str) -> int:
    """Memory nodes of a session."""
    cypher = "MATCH (m:Memory) WHERE m.session_id = $session RETURN count(m) AS n"
    return await raw.number(cypher, session=session_id)


async def graph_links(raw: RawServers, session_id: str) -> dict[str, int]:
    """Relationships that start at the memories of a session, by type."""
    rows = await raw.rows(
        "MATCH (m:Memory)-[r]->() WHERE m.session_id = $session "
        "RETURN type(r) AS kind, count(r) AS n",
        session=session_id,
    )
    return {str(row["kind"]): int(row["n"]) for row in sorted(rows, key=lambda row: row["kind"])}


async def graph_embeddings(raw: RawServers, session_id: str) -> int:
    """Memory nodes of a session that carry a vector."""
    cypher = (
        "MATCH (m:Memory) WHERE m.session_id = $session AND m.embedding IS NOT NULL "
        "RETURN count(m) AS n"
    )
    return await raw.number(cypher, session=session_id)
