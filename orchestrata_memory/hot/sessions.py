"""Sessions: closing, the migration lock, moving out, promotion.

A closed session stays known as closed until upkeep forgets it (`upkeep.FORGET_DAYS` after the
close, with nothing of it left in hot); a store that arrives later still works and lives out its
TTL.
"""

from __future__ import annotations

from typing import Any

from orchestrata_memory.hot import codec, keys
from orchestrata_memory.hot.base import HotState, StoredVector
from orchestrata_memory.hot.part import HotPart, chunks
from orchestrata_memory.hot.reads import Reads
from orchestrata_memory.hot.vectors import vector_arguments
from orchestrata_memory.models import KeyState, MemoryRecord

_CHUNK = 100
_CLOSED_PAGE = 1000


class Sessions(Reads, HotPart):
    """The life of sessions in hot."""

    async def mark_closed(self, session_id: str) -> None:
        """The session is closed; idempotent, the first time counts."""
        await self._redis.run("mark_closed", session_id)

    async def is_closed(self, session_id: str) -> bool:
        """Whether the session was closed."""
        return await self._redis.command("ZSCORE", keys.CLOSED, session_id) is not None

    async def closed_sessions(self) -> list[str]:
        """Closed sessions that still hold entries or replicas in hot."""
        result: list[str] = []
        start = 0
        while True:
            looked_at, busy = await self._redis.run("closed_sessions", start, _CLOSED_PAGE)
            result += [session.decode() for session in busy]
            start += looked_at
            if looked_at < _CLOSED_PAGE:
                return result

    async def session_keys(self, session_id: str) -> dict[str, HotState]:
        """Live entries whose home is the session; two round trips.

        Entries whose hash expired before cold had them are included, tombstones are not (nothing
        of them has to move).
        """
        members: list[bytes] = await self._redis.command("SMEMBERS", keys.session(session_id))
        states = await self.read([member.decode() for member in members])
        return {key: state for key, state in states.items() if state.state is KeyState.LIVE}

    async def lock_session(self, session_id: str, token: str, seconds: float) -> bool:
        """Take or renew the migration lock; False when another token holds it."""
        milliseconds = max(1, int(seconds * 1000))
        return bool(await self._redis.run("lock_session", session_id, token, milliseconds))

    async def unlock_session(self, session_id: str, token: str) -> None:
        """Give the lock back; one that expired or is another's is left alone."""
        await self._redis.run("release", "lock", session_id, token)

    async def move_out(self, key: str, version: int) -> bool:
        """Drop a hot copy that cold holds; see `HotStore.move_out`.

        Traces: REQ-010-032
        """
        return bool(await self._redis.run("move_out", key, version))

    async def drop_replicas(self, session_id: str) -> int:
        """Drop the replicas held for a session; see `HotStore.drop_replicas`."""
        held: list[bytes] = await self._redis.command("HKEYS", keys.replicas(session_id))
        dropped = 0
        for chunk in chunks(held, _CHUNK):
            dropped += int(await self._redis.run("drop_replicas", session_id, *chunk))
        return dropped

    async def extend_ttl(self, key: str) -> None:
        """Give a hot copy the long TTL; see `HotStore.extend_ttl`. One that expired comes back."""
        await self._redis.run("extend_ttl", key, self._long_ttl_ms)

    async def promote(self, session_id: str, record: MemoryRecord, vector: StoredVector) -> bool:
        """Copy a cold entry into an open session; see `HotStore.promote`.

        Traces: REQ-010-033
        """
        operation: dict[str, Any] = {
            "session": session_id,
            "key": record.key,
            "version": record.version,
            "owner": record.volk_id,
            "home": record.session_id,
            "ttl": self._ttl_ms,
        }
        if record.project_id is not None:
            operation["project"] = record.project_id
        fields = codec.record_fields(record, replica=True)
        return bool(
            await self._redis.run(
                "promote", codec.dump_json(operation), *vector_arguments(vector), *fields
            )
        )
