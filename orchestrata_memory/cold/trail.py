"""Audit records and delegations in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from neo4j import AsyncManagedTransaction
from neo4j.exceptions import DriverError, Neo4jError

from orchestrata_memory.cold.connection import GraphConnection, Work
from orchestrata_memory.cold.failures import BadData, translated
from orchestrata_memory.cold.queries import query
from orchestrata_memory.cold.rows import instant
from orchestrata_memory.cold.transaction import ensure_volks
from orchestrata_memory.models import AuditRecord, Delegation

T = TypeVar("T")

_PRUNE_BATCH = 5000


class GraphTrail:
    """Keeps audit records and delegations.

    Args:
        connection: The open connection.
    """

    def __init__(self, connection: GraphConnection) -> None:
        self._connection = connection

    async def put_delegations(self, delegations: Sequence[Delegation]) -> None:
        """See `ColdStore.put_delegations`; an older version changes nothing.

        Traces: REQ-010-048
        """
        newest: dict[tuple[str, str], Delegation] = {}
        for one in delegations:
            pair = (one.delegator, one.delegate)
            if pair not in newest or newest[pair].version < one.version:
                newest[pair] = one
        rows = [_delegation_row(newest[pair]) for pair in sorted(newest)]

        async def work(tx: AsyncManagedTransaction) -> None:
            await ensure_volks(tx, (volk for pair in newest for volk in pair))
            await _consume(tx, "put_delegations", {"rows": rows})

        if rows:
            await self._write(work)

    async def delegations(self) -> list[Delegation]:
        """See `ColdStore.delegations`; each pair once, the newest version."""
        newest: dict[tuple[str, str], Delegation] = {}
        for row in await self._connection.read(query("delegations"), {}):
            one = _delegation_from(row)
            pair = (one.delegator, one.delegate)
            if pair not in newest or newest[pair].version < one.version:
                newest[pair] = one
        return list(newest.values())

    async def append_audit(self, records: Sequence[AuditRecord]) -> None:
        """See `ColdStore.append_audit`.

        Traces: REQ-010-047
        """
        distinct = {record.audit_id: _audit_row(record) for record in records}
        rows = [distinct[audit_id] for audit_id in sorted(distinct)]

        async def work(tx: AsyncManagedTransaction) -> None:
            await _consume(tx, "append_audit", {"rows": rows})

        if rows:
            await self._write(work)

    async def audit_of(self, key: str, *, limit: int) -> list[AuditRecord]:
        """The newest `limit` records of a key, the oldest of them first."""
        rows = await self._connection.read(query("audit_of"), {"key": key, "limit": limit})
        return [_audit_from(row) for row in reversed(rows)]

    async def prune_audit(self, before: datetime) -> int:
        """See `ColdStore.prune_audit`; in batches, so that no transaction grows large."""
        parameters = {"before": instant(before), "limit": _PRUNE_BATCH}

        async def work(tx: AsyncManagedTransaction) -> int:
            result = await tx.run(query("prune_audit"), parameters)
            record = await result.single()
            return int(record[0]) if record is not None else 0

        total = 0
        while deleted := await self._write(work):
            total += deleted
        return total

    async def _write(self, work: Work[T]) -> T:
        try:
            return await self._connection.write(work)
        except (Neo4jError, DriverError, *BadData) as error:
            raise translated(error) from error


async def _consume(tx: AsyncManagedTransaction, name: str, parameters: Mapping[str, Any]) -> None:
    result = await tx.run(query(name), dict(parameters))
    await result.consume()


def _delegation_row(one: Delegation) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "created_at": instant(one.created_at),
        "revoked": one.revoked,
        "version": one.version,
    }
    if one.expires_at is not None:
        properties["expires_at"] = instant(one.expires_at)
    return {"delegator": one.delegator, "delegate": one.delegate, "properties": properties}


def _delegation_from(row: Sequence[Any]) -> Delegation:
    delegator, delegate, created_at, expires_at, revoked, version = row
    return Delegation(
        delegator=delegator,
        delegate=delegate,
        created_at=datetime.fromisoformat(created_at),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
        revoked=bool(revoked),
        version=version,
    )


def _audit_row(record: AuditRecord) -> dict[str, Any]:
    row: dict[str, Any] = {
        "audit_id": record.audit_id,
        "operation": record.operation,
        "volk_id": record.volk_id,
        "session_id": record.session_id,
        "key": record.key,
        "rule": record.rule,
        "outcome": record.outcome,
        "detail": record.detail,
        "at": instant(record.at),
    }
    return {name: value for name, value in row.items() if value is not None}


def _audit_from(row: Sequence[Any]) -> AuditRecord:
    audit_id, operation, volk_id, session_id, key, rule, outcome, detail, at = row
    return AuditRecord(
        audit_id=audit_id,
        operation=operation,
        volk_id=volk_id,
        session_id=session_id,
        key=key,
        rule=rule,
        outcome=outcome,
        detail=detail,
        at=datetime.fromisoformat(at),
    )
