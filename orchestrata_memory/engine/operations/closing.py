"""migrate_to_cold, asked for or set off by the bus."""

from __future__ import annotations

from orchestrata_memory.engine.doorway import Doorway
from orchestrata_memory.engine.migrating import Migrator
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.interfaces import SystemEvent
from orchestrata_memory.models import SYSTEM_VOLK, MemoryContext, memory_context
from orchestrata_memory.models.validation import check_identifier

MIGRATE_RULE = "can_migrate_session"


class Closing:
    """Moves sessions to the cold tier.

    Traces: REQ-010-032
    """

    def __init__(self, *, doorway: Doorway, governance: Governance, migrator: Migrator) -> None:
        self._doorway = doorway
        self._governance = governance
        self._migrator = migrator

    async def migrate(self, session_id: str) -> int:
        """See `IMemoryEngine.migrate_to_cold`."""
        call = self._doorway.enter("migrate_to_cold")
        check_identifier(session_id, "session_id")
        decision = await self._governance.can_migrate(call.volk_id, session_id)
        if decision.allowed:
            migration = await self._migrator.close_session(session_id)
        else:
            if not await self._governance.is_registered(call.volk_id):
                await self._doorway.require(call, decision, f"session={session_id}")
            migration = await self._migrator.move_owned(session_id, call.volk_id)
        await self._doorway.note(
            call,
            MIGRATE_RULE,
            f"session={session_id} moved={len(migration.moved)} left={len(migration.remaining)}",
        )
        return len(migration.moved)

    async def on_session_closed(self, event: SystemEvent) -> None:
        """Handler of `session.closed`; acts as the engine itself."""
        session_id = check_identifier(event.payload.get("session_id"), "session_id")
        with memory_context(MemoryContext(volk_id=SYSTEM_VOLK, session_id=session_id)):
            await self.migrate(session_id)
