"""Facts of a session, emitted as events."""

from __future__ import annotations

from orchestrata_memory.interfaces import Kernel, SystemEvent, Topic

SOURCE = "SYS:MEMORY"


class EventFactEmitter:
    """Emits each fact as a ``session.fact`` event; implements `FactEmitter`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def emit_fact(self, session_id: str, name: str, value: int | str) -> None:
        """Record one fact: payload ``session_id``, ``name``, ``value``.

        Traces: REQ-010-032
        """
        await self._kernel.emit_event(
            SystemEvent(
                type=Topic.SESSION_FACT,
                source=SOURCE,
                payload={"session_id": session_id, "name": name, "value": value},
            )
        )
