"""Putting a new memory into the hot tier, under a generated or an explicit key."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import uuid4

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.engine.drafting import same_memory
from orchestrata_memory.errors import (
    MemoryConflictError,
    MemoryKeyExistsError,
    MemoryUnavailableError,
)
from orchestrata_memory.hot.base import HotState, HotStore, VersionConflictError
from orchestrata_memory.models import AuditRecord, KeyState, MemoryRecord

ATTEMPTS = 12
"""How often a step is tried again that lost a race against another writer of its key."""


def backoff(attempt: int) -> float:
    """Seconds to wait before the next attempt."""
    return min(0.002 * 2.0**attempt, 0.25)


class Inserter:
    """Writes first versions.

    An explicit key is claimed in Redis before cold is asked whether it has it, so that of two
    callers one wins and no key is taken twice, wherever its first life was lived.

    Traces: REQ-010-007, REQ-010-009
    """

    def __init__(self, hot: HotStore, cold: ColdStore) -> None:
        self._hot = hot
        self._cold = cold

    async def insert_generated(self, record: MemoryRecord, audit: AuditRecord) -> MemoryRecord:
        """Write a record whose key is a fresh UUID4."""
        return await self._hot.insert(record, audit)

    async def insert_explicit(
        self, record: MemoryRecord, audit: AuditRecord
    ) -> tuple[MemoryRecord, bool]:
        """Write a record under a key the caller chose.

        Returns:
            The record, and whether it is new (False: the same memory was there already).

        Raises:
            MemoryKeyExistsError: The key is taken.
            MemoryUnavailableError: Hot or cold is down.
        """
        for attempt in range(ATTEMPTS):
            try:
                return await self._try(record, audit)
            except VersionConflictError:
                await asyncio.sleep(backoff(attempt))
        raise MemoryConflictError(f"the key {record.key!r} is being written by others; try again")

    async def _try(self, record: MemoryRecord, audit: AuditRecord) -> tuple[MemoryRecord, bool]:
        token = uuid4().hex
        try:
            # Within, for a claim may be laid though its answer was lost or not waited for.
            state = await self._hot.claim(record.key, token)
            if state.state in {KeyState.LIVE, KeyState.COLD}:
                return await self._existing(state, record), False
            free_version = await self._free_version(state, record)
            if free_version is None:
                return await self._existing(state, record), False
            wanted = record.changed(version=free_version)
            return await self._hot.insert(wanted, audit, claim_token=token), True
        finally:
            with suppress(MemoryUnavailableError):  # it runs out by itself
                await self._hot.release_claim(record.key, token)

    async def _free_version(self, state: HotState, record: MemoryRecord) -> int | None:
        """The version a free key goes on with, or None when cold holds it."""
        if state.state is KeyState.DELETED:
            return state.version + 1
        known = (await self._cold.versions([record.key])).get(record.key)
        if known is None:
            return 1
        return known.version + 1 if known.deleted else None

    async def _existing(self, state: HotState, wanted: MemoryRecord) -> MemoryRecord:
        existing = state.record or (await self._cold.get([wanted.key])).get(wanted.key)
        if existing is None:
            raise VersionConflictError(wanted.key)
        if not same_memory(existing, wanted):
            raise MemoryKeyExistsError(wanted.key)
        return existing
