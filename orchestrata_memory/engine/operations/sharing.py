"""share, unshare, delegate and revoke."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from orchestrata_memory.engine.changing import Changer
from orchestrata_memory.engine.delegating import Delegations
from orchestrata_memory.engine.doorway import Call, Doorway
from orchestrata_memory.engine.rights import ReadingRights
from orchestrata_memory.errors import MemoryNotFoundError, MemoryValidationError
from orchestrata_memory.governance.base import Decision, Governance
from orchestrata_memory.models import AuditRecord, Delegation, MemoryEntry, MemoryRecord
from orchestrata_memory.models.validation import check_identifier, check_time

SHARE_RULE = "can_share_memory"
UNSHARE_RULE = "can_update_memory"
DELEGATE_RULE = "can_delegate"
REVOKE_RULE = "can_revoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What permits a change of readers, and how the audit trail calls it."""

    name: str
    decide: Callable[[Call, MemoryRecord], Awaitable[Decision]]
    detail: str


class Sharing:
    """Operations that let others read."""

    def __init__(
        self,
        *,
        doorway: Doorway,
        governance: Governance,
        changer: Changer,
        delegations: Delegations,
        rights: ReadingRights,
    ) -> None:
        self._doorway = doorway
        self._governance = governance
        self._changer = changer
        self._delegations = delegations
        self._rights = rights

    async def share(self, key: str, volk_id: str) -> MemoryEntry:
        """Let a registered Volk read an own entry; sharing it again changes nothing."""

        async def decision(call: Call, current: MemoryRecord) -> Decision:
            return await self._governance.can_share(call.volk_id, volk_id, current)

        rule = _Rule(name=SHARE_RULE, decide=decision, detail=f"with={volk_id}")
        return await self._change_readers("share", key, volk_id, rule, set.union)

    async def unshare(self, key: str, volk_id: str) -> MemoryEntry:
        """Take a Volk's right to read an own entry back; nothing happens when it had none."""

        async def decision(call: Call, current: MemoryRecord) -> Decision:
            return await self._governance.can_update(call.volk_id, current)

        rule = _Rule(name=UNSHARE_RULE, decide=decision, detail=f"from={volk_id}")
        return await self._change_readers("unshare", key, volk_id, rule, set.difference)

    async def _change_readers(
        self,
        operation: str,
        key: str,
        volk_id: str,
        rule: _Rule,
        change: Callable[[set[str], set[str]], set[str]],
    ) -> MemoryEntry:
        call = self._doorway.enter(operation, check_identifier(key, "key"))
        check_identifier(volk_id, "volk_id")

        async def decide(current: MemoryRecord) -> tuple[MemoryRecord, AuditRecord]:
            await self._doorway.require(call, await rule.decide(call, current), rule.detail)
            needed = await self._rights.needed(call.volk_id, current)
            await self._doorway.require(call, needed, rule.detail)
            readers = change({*current.shared_with}, {volk_id})
            # An earlier version could leave the owner among them; from there it can be taken.
            leaves = volk_id in {*current.shared_with} - readers
            if volk_id == current.volk_id and not leaves:
                raise MemoryValidationError("volk_id", "is the owner, who may read it anyway")
            changed = _with_readers(current, readers, call.at)
            if changed is current:
                await self._doorway.note(call, rule.name, "unchanged")
            return changed, call.record(rule.name, detail=rule.detail)

        record = await self._changer.change(key, decide)
        if record is None:
            await self._doorway.note(call, rule.name, "not found")
            raise MemoryNotFoundError(key)
        return record.to_entry()

    async def delegate(self, volk_id: str, expires_at: datetime | None) -> Delegation:
        """Pass on to a Volk what is shared with the caller, now and later, until `expires_at`."""
        call = self._doorway.enter("delegate")
        check_identifier(volk_id, "volk_id")
        expires = _checked_expiry(expires_at, call.at)
        decision = await self._governance.can_delegate(call.volk_id, volk_id)
        await self._doorway.require(call, decision, f"delegate={volk_id}")
        wanted = Delegation(
            delegator=call.volk_id, delegate=volk_id, created_at=call.at, expires_at=expires
        )
        return await self._delegations.put(call, wanted, DELEGATE_RULE)

    async def revoke(self, volk_id: str) -> bool:
        """Take a delegation back; False when none stands."""
        call = self._doorway.enter("revoke")
        check_identifier(volk_id, "volk_id")
        decision = await self._governance.can_revoke(call.volk_id, volk_id)
        await self._doorway.require(call, decision, f"delegate={volk_id}")
        if not await self._delegations.stands(call.volk_id, volk_id):
            await self._doorway.note(call, REVOKE_RULE, f"delegate={volk_id} not found")
            return False
        wanted = Delegation(
            delegator=call.volk_id, delegate=volk_id, created_at=call.at, revoked=True
        )
        await self._delegations.put(call, wanted, REVOKE_RULE)
        return True


def _with_readers(record: MemoryRecord, readers: set[str], now: datetime) -> MemoryRecord:
    shared_with = tuple(sorted(readers))
    if shared_with == record.shared_with:
        return record
    return record.changed(shared_with=shared_with, version=record.version + 1, updated_at=now)


def _checked_expiry(expires_at: datetime | None, now: datetime) -> datetime | None:
    if expires_at is None:
        return None
    expires = check_time(expires_at, "expires_at")
    if expires <= now:
        raise MemoryValidationError("expires_at", "must lie in the future")
    return expires
