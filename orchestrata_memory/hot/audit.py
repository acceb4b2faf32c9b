"""The audit stream: appended to by every write's script and here, drained into cold.

`append_audit` is refused (`MemoryBackpressureError`) while the stream holds ten times the outbox
limit, so that reads cannot fill the server while cold is away; the caller has a file for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrata_memory.errors import MemoryBackpressureError
from orchestrata_memory.hot import codec, keys
from orchestrata_memory.hot.part import HotPart, chunks
from orchestrata_memory.models import AuditRecord

_LIMIT_FACTOR = 10
_APPEND_CHUNK = 500
_PAGE = 5000


class AuditTrail(HotPart):
    """Audit records that cold does not hold yet.

    Traces: REQ-010-047
    """

    async def append_audit(self, records: Sequence[AuditRecord]) -> None:
        """Append records; all that fit into one chunk of 500 stand together or not at all."""
        limit = self._limit * _LIMIT_FACTOR
        for chunk in chunks(records, _APPEND_CHUNK):
            flat = [codec.dump_json(codec.audit_fields(record)) for record in chunk]
            if not await self._redis.run("append_audit", limit, *flat):
                raise MemoryBackpressureError(limit)

    async def pending_audit(self, count: int) -> list[tuple[str, AuditRecord]]:
        """Oldest records that cold does not hold yet, with their stream ids.

        A damaged record comes with what can be read of it.
        """
        found: list[Any] = await self._redis.run("pending_audit", count)
        return [(stream_id.decode(), _load(stream_id, flat)) for stream_id, flat in found]

    async def drained_audit(self, stream_ids: Sequence[str]) -> None:
        """Cold holds these: they go. Idempotent."""
        for chunk in chunks(stream_ids, _APPEND_CHUNK):
            await self._redis.command("XDEL", keys.AUDIT, *chunk)

    async def audit_of(self, key: str) -> list[AuditRecord]:
        """Records of a key that are not drained yet, oldest first."""
        result = []
        cursor = "-"
        while cursor:
            last, found = await self._redis.run("audit_of", key, cursor, _PAGE)
            result += [_load(stream_id, flat) for stream_id, flat in found]
            cursor = f"({last.decode()}" if last else ""
        return result


def _load(stream_id: bytes, flat: Sequence[bytes]) -> AuditRecord:
    return codec.salvage_audit(stream_id.decode(), codec.mapping(flat))
