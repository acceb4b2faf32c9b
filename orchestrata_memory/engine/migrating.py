"""Moving a session's memories to the cold tier for good.

A hot copy goes only after cold was seen to hold its version or a newer one, entry by entry, by a
script that compares versions. What cannot move keeps its hot copy with the long TTL and is tried
again; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from uuid import uuid4

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.config.settings import WorkerSettings
from orchestrata_memory.engine.backoff import Backoff
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.errors import (
    MemoryConflictError,
    MemoryEngineError,
    MemoryUnavailableError,
)
from orchestrata_memory.hot.base import HotState, HotStore
from orchestrata_memory.interfaces import Severity, Topic
from orchestrata_memory.models import KeyState

log = logging.getLogger(__name__)

_LOCK_SECONDS = 30.0
_POLL_SECONDS = 0.05
_RETRY_LIMIT_SECONDS = 600.0
_KEYS_TOLD = 100
_PENDING = "not written behind yet"
_SET_ASIDE = "set aside as a dead letter: the graph refuses it"
FACT_MIGRATED = "memories_migrated"


@dataclass(slots=True)
class Migration:
    """Progress of one migration: keys that moved and keys still in hot, with the reason."""

    moved: set[str] = field(default_factory=set)
    remaining: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Locked:
    """A session whose migration lock is wanted or held, and until when it is waited."""

    session_id: str
    token: str
    deadline: float

    @property
    def late(self) -> bool:
        return time.monotonic() >= self.deadline


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
        self._retries = Backoff(settings.retry_initial_seconds, limit=_RETRY_LIMIT_SECONDS)

    async def close_session(self, session_id: str) -> Migration:
        """Mark a session closed and move everything of it; announces the outcome.

        Raises:
            MemoryEngineError: Nothing could be done now; it is announced, and tried again.
        """
        try:
            return await self._close(session_id, self._settings.migration_timeout_seconds)
        except MemoryEngineError as error:
            self._retries.postpone(session_id)
            await self._announce_failure(session_id, Migration(), [str(error)])
            raise

    async def move_owned(self, session_id: str, owner: str) -> Migration:
        """Move what one Volk owns in a session; the session stays as open as it was."""
        async with self._lock(session_id, self._settings.migration_timeout_seconds) as session:
            migration = Migration()
            wanted = set(await self._present(session_id, owner))
            await self._move(session, wanted, migration)
        await self._conclude(session_id, migration)
        return migration

    async def retry_closed(self) -> None:
        """Try each closed session again, once and with growing pauses, that is not all moved."""
        busy = await self._hot.closed_sessions()
        for session_id in self._retries.due(busy):
            try:
                await self._close(session_id, 0.0, again=True)
            except MemoryConflictError:
                continue  # another engine is at it; one that died lets go of its lock in a while
            except MemoryEngineError as error:
                self._retries.postpone(session_id)
                log.info("a session is not moved yet: %s", error)

    async def _close(self, session_id: str, patience: float, *, again: bool = False) -> Migration:
        async with self._lock(session_id, patience) as session:
            migration = Migration()
            # From the mark on, entries move by themselves as they are confirmed. What was there
            # when it was set counts as moved here, and only here: the lock is held. What comes
            # later is not waited for.
            wanted = set(await self._present(session_id, None))
            await self._hot.mark_closed(session_id)
            wanted |= set(await self._present(session_id, None))
            await self._move(session, wanted, migration)
        await self._hot.drop_replicas(session_id)
        # Only a close is tried again as one: a Volk's own move leaves the session open.
        if migration.remaining:
            self._retries.postpone(session_id)
        else:
            self._retries.forget(session_id)
        await self._conclude(session_id, migration, again=again)
        await self._record(session_id)
        return migration

    @asynccontextmanager
    async def _lock(self, session_id: str, patience: float) -> AsyncIterator[_Locked]:
        session = _Locked(session_id, uuid4().hex, time.monotonic() + patience)
        while not await self._renew(session):
            if session.late:
                raise MemoryConflictError(
                    f"the session {session_id!r} is being migrated by another engine; try again"
                )
            await asyncio.sleep(_POLL_SECONDS)
        try:
            yield session
        finally:
            with suppress(MemoryUnavailableError):  # it runs out by itself
                await self._hot.unlock_session(session_id, session.token)

    async def _renew(self, session: _Locked) -> bool:
        return await self._hot.lock_session(session.session_id, session.token, _LOCK_SECONDS)

    async def _move(self, session: _Locked, wanted: set[str], migration: Migration) -> None:
        while True:
            idle = await self._idle()
            states = await self._present(session.session_id, None)
            present = {key: state for key, state in states.items() if key in wanted}
            migration.moved |= wanted - present.keys()
            migration.remaining = dict.fromkeys(present, _PENDING)
            if not await self._move_confirmed(present, migration) or not migration.remaining:
                break
            if idle and await self._idle():
                migration.remaining = dict.fromkeys(migration.remaining, _SET_ASIDE)
                break
            if session.late:
                break
            await self._renew(session)
            await asyncio.sleep(_POLL_SECONDS)
        await self._forget_deleted(migration)

    async def _idle(self) -> bool:
        """Nothing waits to be written behind, so what is not in cold will not get there."""
        return await self._hot.outbox_length() == 0

    async def _present(self, session_id: str, owner: str | None) -> dict[str, HotState]:
        states = await self._hot.session_keys(session_id)
        return {
            key: state
            for key, state in states.items()
            if state.state is KeyState.LIVE and owner in {None, state.owner}
        }

    async def _move_confirmed(self, present: dict[str, HotState], migration: Migration) -> bool:
        """Move what cold holds; False when cold cannot be asked."""
        try:
            known = await self._cold.versions(list(present)) if present else {}
        except MemoryUnavailableError as error:
            migration.remaining = dict.fromkeys(present, str(error))
            return False
        for key, state in present.items():
            safe = known.get(key)
            if safe is None or safe.version < state.version:
                continue
            if await self._hot.move_out(key, state.version):
                migration.moved.add(key)
                migration.remaining.pop(key)
        return True

    async def _forget_deleted(self, migration: Migration) -> None:
        """What left hot because it was deleted meanwhile did not move."""
        states = await self._hot.read(list(migration.moved)) if migration.moved else {}
        migration.moved = {
            key for key in migration.moved if states[key].state is not KeyState.DELETED
        }

    async def _conclude(
        self, session_id: str, migration: Migration, *, again: bool = False
    ) -> None:
        if not migration.remaining:
            if again and not migration.moved:
                return
            await self._notices.emit(
                Topic.MIGRATE_COMPLETED,
                {"session_id": session_id, "migrated": len(migration.moved)},
            )
            return
        for key in migration.remaining:
            await self._hot.extend_ttl(key)
        reasons = sorted(set(migration.remaining.values()))
        await self._announce_failure(session_id, migration, reasons)

    async def _announce_failure(
        self, session_id: str, migration: Migration, reasons: list[str]
    ) -> None:
        await self._notices.emit(
            Topic.MIGRATE_FAILED,
            {
                "session_id": session_id,
                "keys": sorted(migration.remaining)[:_KEYS_TOLD],
                "failed": len(migration.remaining),
                "migrated": len(migration.moved),
                "reasons": reasons,
            },
            severity=Severity.ERROR,
        )

    async def _record(self, session_id: str) -> None:
        """The session's fact: all its memories in cold, so that a retry never tells less."""
        try:
            count = await self._cold.count_session(session_id)
        except MemoryUnavailableError:
            return
        await self._notices.fact(session_id, FACT_MIGRATED, count)
