"""store, update and delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

from orchestrata_memory.config.settings import LimitSettings
from orchestrata_memory.engine.changing import Changer
from orchestrata_memory.engine.doorway import Call, Doorway
from orchestrata_memory.engine.drafting import Draft
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.engine.rights import ReadingRights
from orchestrata_memory.engine.storing import Inserter
from orchestrata_memory.engine.trail import OWNER
from orchestrata_memory.errors import MemoryNotFoundError, MemoryValidationError
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.interfaces import Topic
from orchestrata_memory.models import (
    AuditRecord,
    MemoryClassification,
    MemoryContext,
    MemoryEntry,
    MemoryRecord,
)
from orchestrata_memory.models.validation import check_identifier
from orchestrata_memory.tokens.base import ITokenCounter

STORE_RULE = "can_store_memory"
UPDATE_RULE = "can_update_memory"
DELETE_RULE = "can_delete_memory"


class Writing:
    """Operations that write one entry.

    `forget` drops cached encodings of contents that are no longer held.

    Traces: REQ-010-006, REQ-010-049, REQ-010-050
    """

    def __init__(
        self,
        *,
        doorway: Doorway,
        governance: Governance,
        inserter: Inserter,
        changer: Changer,
        rights: ReadingRights,
        notices: Notices,
        limits: LimitSettings,
        counter_for: Callable[[MemoryContext], ITokenCounter],
        forget: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        self._doorway = doorway
        self._governance = governance
        self._inserter = inserter
        self._changer = changer
        self._rights = rights
        self._notices = notices
        self._limits = limits
        self._counter_for = counter_for
        self._forget = forget

    async def store(
        self,
        content: str,
        key: str | None,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        classification: MemoryClassification,
    ) -> MemoryEntry:
        """See `IMemoryEngine.store`."""
        wanted_key = str(uuid4()) if key is None else check_identifier(key, "key")
        call = self._doorway.enter("store", wanted_key)
        draft = Draft.checked(
            self._limits,
            content=_given(content),
            tags=tags,
            metadata=metadata,
            classification=classification,
        )
        wanted = draft.classification or MemoryClassification.PRIVATE
        await self._permit_classification(call, wanted, f"classification={wanted}")
        record = draft.first_version(
            wanted_key, call.context, self._counter_for(call.context), call.at
        )
        return (await self.put(call, record, explicit=key is not None)).to_entry()

    async def put(self, call: Call, record: MemoryRecord, *, explicit: bool) -> MemoryRecord:
        """Write a permitted first version, and announce it."""
        audit = call.record(STORE_RULE, detail=f"classification={record.classification}")
        if explicit:
            stored, is_new = await self._inserter.insert_explicit(record, audit)
        else:
            stored, is_new = await self._inserter.insert_generated(record, audit), True
        if not is_new:
            await self._doorway.note(call, STORE_RULE, "unchanged")
        await self._announce("store", stored)
        return stored

    async def update(
        self,
        key: str,
        content: str | None,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        classification: MemoryClassification | None,
    ) -> MemoryEntry:
        """See `IMemoryEngine.update`."""
        call = self._doorway.enter("update", check_identifier(key, "key"))
        if all(given is None for given in (content, tags, metadata, classification)):
            raise MemoryValidationError(
                "update", "nothing to change: give content, tags, metadata or classification"
            )
        draft = Draft.checked(
            self._limits,
            content=content,
            tags=tags,
            metadata=metadata,
            classification=classification,
        )
        counter = self._counter_for(call.context)
        replaced: list[str] = []

        async def decide(current: MemoryRecord) -> tuple[MemoryRecord, AuditRecord]:
            await self._doorway.require(
                call, await self._governance.can_update(call.volk_id, current)
            )
            await self._doorway.require(call, await self._rights.needed(call.volk_id, current))
            detail = ""
            wanted = draft.classification or current.classification
            if wanted is not current.classification:
                detail = f"classification={current.classification}->{wanted}"
                await self._rights.check_width(current, wanted)
                await self._permit_classification(call, wanted, detail)
            replaced.append(current.content)
            return draft.next_version(current, counter, call.at), call.record(
                UPDATE_RULE, detail=detail
            )

        record = await self._changer.change(key, decide)
        await self._forget([text for text in replaced if record and text != record.content])
        if record is None:
            await self._doorway.note(call, UPDATE_RULE, "not found")
            raise MemoryNotFoundError(key)
        await self._announce("update", record)
        return record.to_entry()

    async def delete(self, key: str) -> bool:
        """See `IMemoryEngine.delete`."""
        call = self._doorway.enter("delete", check_identifier(key, "key"))

        async def decide(current: MemoryRecord) -> AuditRecord:
            await self._doorway.require(
                call, await self._governance.can_delete(call.volk_id, current)
            )
            return call.record(DELETE_RULE, detail=f"{OWNER}{current.volk_id}")

        removed = await self._changer.remove(key, decide)
        if removed is None:
            await self._doorway.note(call, DELETE_RULE, "not found")
            return False
        await self._forget([removed.content])
        return True

    async def _permit_classification(
        self, call: Call, wanted: MemoryClassification, detail: str
    ) -> None:
        decision = await self._governance.can_store(call.volk_id, wanted)
        await self._doorway.require(call, decision, detail)

    async def _announce(self, change: str, record: MemoryRecord) -> None:
        await self._notices.emit(
            Topic.STORE_COMPLETED,
            {
                "key": record.key,
                "volk_id": record.volk_id,
                "session_id": record.session_id,
                "classification": str(record.classification),
                "version": record.version,
                "token_count": record.token_count,
                "change": change,
            },
        )


def _given(content: object) -> str:
    if not isinstance(content, str):
        raise MemoryValidationError("content", f"must be a str, not {type(content).__name__}")
    return content
