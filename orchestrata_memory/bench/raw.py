"""The servers themselves, beside the engine: round trips and facts to compare with.

Nothing here goes through the engine's stores, so what it reads is what the servers hold.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

from neo4j import AsyncDriver, AsyncGraphDatabase
from redis.asyncio import Redis

from orchestrata_memory.cold.address import GraphAddress

_PROBE_STREAM = "orchestrata:bench:probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawServers:
    """Plain clients of both servers.

    Attributes:
        redis: Decodes nothing.
        database: Name of the graph's database; None: its default.
    """

    redis: Redis
    driver: AsyncDriver
    database: str | None

    async def rows(self, cypher: LiteralString, **parameters: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Rows of a Cypher query."""
        result = await self.driver.execute_query(
            cypher, parameters_=parameters, database_=self.database
        )
        return [record.data() for record in result.records]

    async def number(self, cypher: LiteralString, **parameters: Any) -> int:  # noqa: ANN401
        """The one number, named ``n``, that a Cypher query answers."""
        rows = await self.rows(cypher, **parameters)
        return int(rows[0]["n"]) if rows else 0

    async def redis_round_trips(self, count: int) -> list[float]:
        """Seconds of `count` PINGs."""
        return await repeat(count, self.redis.ping)

    async def redis_writes(self, count: int) -> list[float]:
        """Seconds of `count` XADDs of 1 KB, flushed to disk as the server is configured."""
        payload: dict[Any, Any] = {"content": b"x" * 1024}

        async def write() -> None:
            await self.redis.xadd(_PROBE_STREAM, payload, maxlen=100)

        try:
            return await repeat(count, write)
        finally:
            await self.redis.delete(_PROBE_STREAM)

    async def graph_round_trips(self, count: int) -> list[float]:
        """Seconds of `count` transactions that return a constant."""

        async def ask() -> None:
            await self.rows("RETURN 1 AS n")

        return await repeat(count, ask)

    async def redis_memory(self) -> int:
        """Bytes Redis uses for its data."""
        return int((await self.redis.info("memory"))["used_memory"])


async def repeat(count: int, step: Callable[[], Awaitable[object]]) -> list[float]:
    """Seconds of each of `count` runs, one after the other, after one to warm up."""
    await step()
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        await step()
        taken.append(time.perf_counter() - started)
    return taken


@asynccontextmanager
async def raw_servers(redis_url: str, graph: GraphAddress) -> AsyncIterator[RawServers]:
    """Plain clients of the servers at these addresses; closed at the end."""
    auth = (graph.username, graph.password) if graph.password else None
    redis: Redis = Redis.from_url(redis_url)
    try:
        async with AsyncGraphDatabase.driver(graph.uri, auth=auth) as driver:
            yield RawServers(redis=redis, driver=driver, database=graph.database)
    finally:
        await redis.aclose()
