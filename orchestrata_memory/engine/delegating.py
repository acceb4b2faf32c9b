"""Delegations: kept in both tiers, known to the rules, never stale where they decide."""

from __future__ import annotations

import asyncio

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.engine.doorway import Call
from orchestrata_memory.engine.storing import ATTEMPTS, backoff
from orchestrata_memory.errors import MemoryConflictError
from orchestrata_memory.governance.base import Decision, Governance
from orchestrata_memory.hot.base import HotStore, VersionConflictError
from orchestrata_memory.models import Delegation, MemoryClassification, MemoryRecord


class Delegations:
    """Grants, revokes and keeps the rules informed.

    Traces: REQ-010-048
    """

    def __init__(self, hot: HotStore, cold: ColdStore, governance: Governance) -> None:
        self._hot = hot
        self._cold = cold
        self._governance = governance

    async def restore(self) -> None:
        """Take over what cold knows, for a hot tier that begins anew."""
        await self._hot.restore_delegations(await self._cold.delegations())
        await self.refresh()

    async def refresh(self) -> None:
        """Tell the rules what stands in hot now."""
        await self._governance.set_delegations(await self._hot.delegations())

    async def put(self, call: Call, wanted: Delegation, rule: str) -> Delegation:
        """Write a grant or revocation as the next version of its pair.

        Raises:
            MemoryConflictError: The pair is being written by others.
        """
        for attempt in range(ATTEMPTS):
            version = 1 + max(
                (
                    known.version
                    for known in await self._hot.delegations()
                    if (known.delegator, known.delegate) == (wanted.delegator, wanted.delegate)
                ),
                default=0,
            )
            delegation = Delegation(
                delegator=wanted.delegator,
                delegate=wanted.delegate,
                created_at=wanted.created_at,
                expires_at=wanted.expires_at,
                revoked=wanted.revoked,
                version=version,
            )
            try:
                await self._hot.put_delegation(
                    delegation, call.record(rule, detail=_told(delegation))
                )
            except VersionConflictError:
                await asyncio.sleep(backoff(attempt))
                continue
            await self.refresh()
            return delegation
        raise MemoryConflictError("the delegation is being changed by others; try again")

    async def stands(self, delegator: str, delegate: str) -> bool:
        """Whether a delegation of the pair was granted and not revoked."""
        return any(
            not known.revoked and (known.delegator, known.delegate) == (delegator, delegate)
            for known in await self._hot.delegations()
        )

    async def can_read(self, volk_id: str, record: MemoryRecord) -> Decision:
        """`can_read_memory`, with delegations read anew where they decide.

        Another process may have granted or revoked one a moment ago; an owner's or a direct
        reader's answer does not depend on that.
        """
        if not _stands_without_delegation(volk_id, record):
            await self.refresh()
        return await self._governance.can_read(volk_id, record)


def _told(delegation: Delegation) -> str:
    until = "" if delegation.expires_at is None else f" until={delegation.expires_at.isoformat()}"
    return f"delegate={delegation.delegate}{until}"


def _stands_without_delegation(volk_id: str, record: MemoryRecord) -> bool:
    return (
        record.volk_id == volk_id
        or record.classification is not MemoryClassification.PRIVATE
        or volk_id in record.shared_with
    )
