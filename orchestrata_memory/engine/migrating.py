"""Moving a session's memories to the cold tier for good.

A hot copy goes only after cold was seen to hold its version or a newer one, entry by entry, by a
script that compares versions. What cannot move keeps its hot copy with the long TTL and is tried
again; the others go on.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from uuid import uuid4

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.config.settings import WorkerSettings
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.errors import COLD_TIER, MemoryConflictError, MemoryUnavailableError
from orchestrata_memory.hot.base import HotState, HotStore
from orchestrata_memory.interfaces import Severity, Topic
from orchestrata_memory.models import KeyState

_LOCK_SECONDS = 30.0
_POLL_SECONDS = 0.05
FACT_MIGRATED = "memories_migrated"


@dataclass(slots=True)
class Migration:
    """Progress of one migration: keys that moved and keys still in hot, with the reason."""

    moved: set[str] = field(default_factory=set)
    remaining: dict[str, str] = field(default_factory=dict)


class Migrator:
    """Closes sessions and moves their memories.

    Traces: REQ-010-032
    """

    def __init__(
        self, hot: HotStore, cold: ColdStore, notices: Notices, settings: WorkerSettings
    ) -> None:
        self._hot = hot
        self._cold = cold
        self._notices = notices
        self._settings = settings

    async def close_session(self, session_id: str) -> Migration:
        """Mark a session closed and move everything of it; announces the outcome."""
        migration = await self._locked(session_id, owner=None)
        await self._hot.drop_replicas(session_id)
        await self._announce(session_id, migration)
        return migration

    async def move_owned(self, session_id: str, owner: str) -> Migration:
        """Move what one Volk owns in a session; the session stays as open as it was."""
        migration = await self._locked(session_id, owner=owner)
        await self._announce(session_id, migration)
        return migration

    async def retry_closed(self) -> None:
        """Try closed sessions again that still have something in hot."""
        for session_id in await self._hot.closed_sessions():
            await self.close_session(session_id)

    async def _locked(self, session_id: str, *, owner: str | None) -> Migration:
        token = uuid4().hex
        deadline = time.monotonic() + self._settings.migration_timeout_seconds
        while not await self._hot.lock_session(session_id, token, _LOCK_SECONDS):
            if time.monotonic() > deadline:
                raise MemoryConflictError(
                    f"the session {session_id!r} is being migrated by another engine; try again"
                )
            await asyncio.sleep(_POLL_SECONDS)
        try:
            migration = Migration()
            if owner is None:
                # From the mark on, entries move by themselves as they are confirmed. What is
                # there before it counts as moved here, and only here: the lock is held.
                migration.remaining = dict.fromkeys(await self._present(session_id, None), "")
                await self._hot.mark_closed(session_id)
            await self._move(session_id, owner, token, deadline, migration)
            await self._forget_deleted(migration)
            return migration
        finally:
            await self._hot.unlock_session(session_id, token)

    async def _move(
        self,
        session_id: str,
        owner: str | None,
        token: str,
        deadline: float,
        migration: Migration,
    ) -> None:
        while True:
            present = await self._present(session_id, owner)
            migration.moved |= migration.remaining.keys() - present.keys()
            migration.remaining = dict.fromkeys(present, "not written behind yet")
            await self._move_confirmed(present, migration)
            if not migration.remaining or self._hopeless(migration, deadline):
                return
            await self._hot.lock_session(session_id, token, _LOCK_SECONDS)
            await asyncio.sleep(_POLL_SECONDS)

    def _hopeless(self, migration: Migration, deadline: float) -> bool:
        if time.monotonic() > deadline:
            return True
        return all(reason.startswith(COLD_TIER) for reason in migration.remaining.values())

    async def _present(self, session_id: str, owner: str | None) -> dict[str, HotState]:
        states = await self._hot.session_keys(session_id)
        return {
            key: state
            for key, state in states.items()
            if state.state is KeyState.LIVE and owner in {None, state.owner}
        }

    async def _move_confirmed(self, present: dict[str, HotState], migration: Migration) -> None:
        try:
            known = await self._cold.versions(list(present)) if present else {}
        except MemoryUnavailableError as error:
            migration.remaining = dict.fromkeys(present, str(error))
            return
        for key, state in present.items():
            safe = known.get(key)
            if safe is None or safe.version < state.version:
                continue
            if await self._hot.move_out(key, state.version):
                migration.moved.add(key)
                migration.remaining.pop(key)

    async def _forget_deleted(self, migration: Migration) -> None:
        """What left hot because it was deleted meanwhile did not move."""
        states = await self._hot.read(list(migration.moved)) if migration.moved else {}
        migration.moved = {
            key for key in migration.moved if states[key].state is not KeyState.DELETED
        }

    async def _announce(self, session_id: str, migration: Migration) -> None:
        if migration.remaining:
            for key in migration.remaining:
                await self._hot.extend_ttl(key)
            await self._notices.emit(
                Topic.MIGRATE_FAILED,
                {
                    "session_id": session_id,
                    "keys": sorted(migration.remaining)[:100],
                    "failed": len(migration.remaining),
                    "migrated": len(migration.moved),
                    "reasons": sorted(set(migration.remaining.values())),
                },
                severity=Severity.ERROR,
            )
        else:
            await self._notices.emit(
                Topic.MIGRATE_COMPLETED,
                {"session_id": session_id, "migrated": len(migration.moved)},
            )
        await self._notices.fact(session_id, FACT_MIGRATED, len(migration.moved))
