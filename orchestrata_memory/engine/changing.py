"""Changing what is stored: the next version of an entry, or its tombstone.

Each change is compare-and-set on the version: read, decide, write; start over when another
writer was quicker. Decisions are therefore always about the state that is written over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.engine.storing import ATTEMPTS, backoff
from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.errors import MemoryConflictError, MemoryUnavailableError
from orchestrata_memory.hot.base import HotStore, VersionConflictError, Withdrawal
from orchestrata_memory.models import AuditRecord, MemoryRecord
from orchestrata_memory.retrieval.hot_index import HotIndex


class Changer:
    """Compare-and-set on the newest version of a key."""

    def __init__(self, hot: HotStore, cold: ColdStore, tiers: Tiers, index: HotIndex) -> None:
        self._hot = hot
        self._cold = cold
        self._tiers = tiers
        self._index = index

    async def change(
        self,
        key: str,
        decide: Callable[[MemoryRecord], Awaitable[tuple[MemoryRecord, AuditRecord]]],
    ) -> MemoryRecord | None:
        """Write what `decide` makes of the newest version.

        `decide` raises to refuse, and returns its argument unchanged when nothing is to do.

        Returns:
            The record as it stands then; None when the key does not exist.
        """

        async def step(current: MemoryRecord) -> MemoryRecord:
            wanted, audit = await decide(current)
            if wanted is not current:
                await self._hot.replace(
                    wanted,
                    audit,
                    expected_version=current.version,
                    withdrawals=await self._withdrawals(key),
                )
                self._index.foresee(key, wanted.version, deleted=False)
            return wanted

        return await self._retry(key, step)

    async def remove(
        self, key: str, decide: Callable[[MemoryRecord], Awaitable[AuditRecord]]
    ) -> MemoryRecord | None:
        """Write a tombstone over the newest version, which is returned; None when there is none."""

        async def step(current: MemoryRecord) -> MemoryRecord:
            audit = await decide(current)
            await self._hot.tombstone(current, audit, withdrawals=await self._withdrawals(key))
            self._index.foresee(key, current.version + 1, deleted=True)
            return current

        return await self._retry(key, step)

    async def _retry(
        self, key: str, step: Callable[[MemoryRecord], Awaitable[MemoryRecord]]
    ) -> MemoryRecord | None:
        for attempt in range(ATTEMPTS):
            located = await self._tiers.locate(key)
            if located is None:
                return None
            try:
                return await step(located.record)
            except VersionConflictError:
                await asyncio.sleep(backoff(attempt))
        raise MemoryConflictError(f"the key {key!r} changes faster than it can be read; try again")

    async def _withdrawals(self, key: str) -> list[Withdrawal]:
        """Stored summaries, of any depth, that rest on the key, as far as cold knows.

        Those that hot knows fall by the write itself. With cold away its summaries cannot be
        named now; they are stale by their sources' versions, which every read of a summary checks.
        """
        found: dict[str, Withdrawal] = {}
        level = [key]
        try:
            while level:
                summaries = [
                    s for of in (await self._cold.summaries_of(level)).values() for s in of
                ]
                level = [summary.key for summary in summaries if summary.key not in found]
                found.update((summary.key, _withdrawal(summary)) for summary in summaries)
        except MemoryUnavailableError:
            return []
        return list(found.values())


def _withdrawal(summary: MemoryRecord) -> Withdrawal:
    return Withdrawal(
        key=summary.key,
        version=summary.version,
        volk_id=summary.volk_id,
        session_id=summary.session_id,
        project_id=summary.project_id,
    )
