"""The hot tier on Redis or Valkey."""

from __future__ import annotations

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.hot import server
from orchestrata_memory.hot.audit import AuditTrail
from orchestrata_memory.hot.census import Census
from orchestrata_memory.hot.connection import Connection
from orchestrata_memory.hot.outbox import Outbox
from orchestrata_memory.hot.sessions import Sessions
from orchestrata_memory.hot.upkeep import Upkeep
from orchestrata_memory.hot.vectors import Vectors
from orchestrata_memory.hot.writes import Writes
from orchestrata_memory.interfaces import PartHealth

_MILLISECONDS = 1000
_SCRIPTS = ("insert", "replace", "tombstone", "read", "confirm", "claim", "changes_since")


class RedisHotStore(Writes, Sessions, Vectors, Census, Outbox, AuditTrail, Upkeep):
    """`HotStore` on Redis 7 or newer, or Valkey; one server, or Sentinel.

    Args:
        settings: The server and its limits.
        url: Given for an embedded server; wins over ``settings.url``.
        outbox_limit: At this many records (dead letters included) stores are refused.

    Raises:
        MemoryConfigurationError: No URL, one that cannot be understood, or one of a cluster.

    Traces: REQ-010-009, REQ-010-024, REQ-010-025
    """

    def __init__(
        self, settings: RedisSettings, *, url: str | None = None, outbox_limit: int
    ) -> None:
        if url is None and settings.url is not None:
            url = settings.url.get_secret_value()
        if url is None:
            raise MemoryConfigurationError("redis.url: no server is configured")
        super().__init__(
            Connection(settings, url),
            ttl_ms=settings.ttl_seconds * _MILLISECONDS,
            long_ttl_ms=settings.failed_migration_ttl_seconds * _MILLISECONDS,
            limit=outbox_limit,
        )

    @property
    def round_trips(self) -> int:
        """Round trips to the server so far."""
        return self._redis.round_trips

    async def open(self) -> None:
        """Connect and check the server; see `HotStore.open`. Idempotent.

        Raises:
            MemoryConfigurationError: See `server.check`.
            MemoryUnavailableError: See `server.check`.
        """
        await self._redis.open()
        try:
            await server.check(self._redis)
            await self._redis.load(_SCRIPTS)
            await self.ensure_group()
        except BaseException:
            await self._redis.close()
            raise

    async def close(self) -> None:
        """Disconnect; idempotent. `open` may be called again."""
        await self._redis.close()

    async def health(self) -> PartHealth:
        """See `HotStore.health`; never raises."""
        return await server.report(self._redis, self._limit)
