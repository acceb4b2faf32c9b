"""Writes: claims, insert, replace, tombstone, delegations. One script each, one round trip each.

A script recognises its own repetition by the audit record's id, so a write is tried once more
when the connection broke. If the second try is refused, the first may have been done and
overtaken: that is said as `MemoryUnavailableError`, not as a conflict.

The outbox bound counts dead letters too. At the bound, `insert` and `replace` are refused;
tombstones, delegations and revocations pass up to a tenth above it, because they give room or
take rights away. Withdrawn summaries are not counted against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from orchestrata_memory.errors import MemoryBackpressureError, MemoryUnavailableError
from orchestrata_memory.hot import codec, keys
from orchestrata_memory.hot.base import HotState, VersionConflictError, Withdrawal
from orchestrata_memory.hot.failures import PART
from orchestrata_memory.hot.part import HotPart, load_state
from orchestrata_memory.models import AuditRecord, Delegation, MemoryRecord

CLAIM_MS = 60_000
_SHARING = frozenset({"share", "unshare"})

_NO_LIMIT = 2**53
"""More records than any outbox holds, and exact in Lua."""


class Writes(HotPart):
    """Everything that changes memories and delegations.

    Traces: REQ-010-009, REQ-010-026
    """

    async def claim(self, key: str, token: str) -> HotState:
        """Claim an explicit key for a minute; see `HotStore.claim`."""
        mine, state = await self._redis.run("claim", key, token, CLAIM_MS)
        if not mine:
            raise VersionConflictError(f"another caller claims the key {key!r}")
        return load_state(key, state)

    async def release_claim(self, key: str, token: str) -> None:
        """Give a claim back; one that expired or is another's is left alone."""
        await self._redis.run("release", "claim", key, token)

    async def insert(
        self, record: MemoryRecord, audit: AuditRecord, *, claim_token: str | None = None
    ) -> MemoryRecord:
        """Write a new memory; see `HotStore.insert`.

        A stored summary is refused too (`VersionConflictError`) when one of its sources is known
        to be deleted or newer than `source_versions` says.

        Traces: REQ-010-009, REQ-010-024, REQ-010-025
        """
        operation = self._operation(record, audit, kind="store")
        if claim_token is not None:
            operation["claim"] = claim_token
        answer = await self._write(
            "insert", record.key, codec.dump_json(operation), *codec.record_fields(record)
        )
        return record.changed(position=int(answer[1]))

    async def replace(
        self,
        record: MemoryRecord,
        audit: AuditRecord,
        *,
        expected_version: int,
        withdrawals: Sequence[Withdrawal] = (),
    ) -> None:
        """Write the next version of a memory; see `HotStore.replace`.

        The notification's kind is ``share`` when the audit record's operation is ``share`` or
        ``unshare``, else ``update``.
        """
        kind = "share" if audit.operation in _SHARING else "update"
        operation = self._operation(record, audit, kind=kind)
        operation["expected"] = expected_version
        operation["withdrawals"] = _withdrawn(withdrawals)
        await self._write(
            "replace", record.key, codec.dump_json(operation), *codec.record_fields(record)
        )

    async def tombstone(
        self,
        record: MemoryRecord,
        audit: AuditRecord,
        *,
        withdrawals: Sequence[Withdrawal] = (),
        bounded: bool = True,
    ) -> None:
        """Delete a memory; see `HotStore.tombstone`."""
        operation = self._operation(record, audit, kind="delete")
        operation["expected"] = record.version
        operation["withdrawals"] = _withdrawn(withdrawals)
        operation["limit"] = self._extended_limit() if bounded else _NO_LIMIT
        await self._write("tombstone", record.key, codec.dump_json(operation))

    async def put_delegation(self, delegation: Delegation, audit: AuditRecord) -> None:
        """Grant or revoke; see `HotStore.put_delegation`.

        Traces: REQ-010-048
        """
        key = f"{delegation.delegator}\0{delegation.delegate}"
        operation = {
            "key": key,
            "version": delegation.version,
            "limit": self._extended_limit(),
            "audit": codec.audit_fields(audit),
        }
        await self._write(
            "put_delegation",
            f"{delegation.delegator} to {delegation.delegate}",
            codec.dump_json(operation),
            keys.delegation_field(delegation.delegator, delegation.delegate),
            codec.delegation_value(delegation),
            *codec.delegation_fields(delegation),
        )

    async def restore_delegations(self, delegations: Sequence[Delegation]) -> None:
        """Take over what cold knows where hot holds nothing newer."""
        arguments: list[str | int] = []
        for each in delegations:
            field = keys.delegation_field(each.delegator, each.delegate)
            arguments += (field, each.version, codec.delegation_value(each))
        if arguments:
            await self._redis.run("restore_delegations", *arguments)

    async def delegations(self) -> list[Delegation]:
        """Every delegation hot knows, revoked and expired ones included."""
        values: list[bytes] = await self._redis.command("HVALS", keys.DELEGATIONS)
        return [codec.load_delegation_value(value) for value in values]

    def _operation(self, record: MemoryRecord, audit: AuditRecord, *, kind: str) -> dict[str, Any]:
        operation: dict[str, Any] = {
            "key": record.key,
            "kind": kind,
            "session": record.session_id,
            "volk": record.volk_id,
            "version": record.version,
            "by": audit.audit_id,
            "sources": record.sources,
            "source_versions": record.source_versions,
            "ttl": self._ttl_ms,
            "limit": self._limit,
            "audit": codec.audit_fields(audit),
        }
        if record.project_id is not None:
            operation["project"] = record.project_id
        return operation

    def _extended_limit(self) -> int:
        return self._limit + math.ceil(self._limit / 10)

    async def _write(self, script: str, what: str, *arguments: str) -> list[Any]:
        answer: list[Any]
        answer, again = await self._redis.run_write(script, *arguments)
        match answer[0]:
            case b"done":
                return answer
            case b"full":
                raise MemoryBackpressureError(self._limit)
            case _ if again:
                raise MemoryUnavailableError(
                    PART, "the connection broke during a write; whether it was done is not known"
                )
            case _:
                raise VersionConflictError(f"{what}: its state is not the expected one")


def _withdrawn(withdrawals: Sequence[Withdrawal]) -> list[dict[str, str | int]]:
    result: list[dict[str, str | int]] = []
    for each in withdrawals:
        item: dict[str, str | int] = {
            "key": each.key,
            "version": each.version,
            "owner": each.volk_id,
            "session": each.session_id,
        }
        if each.project_id is not None:
            item["project"] = each.project_id
        result.append(item)
    return result
