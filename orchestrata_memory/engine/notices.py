"""The engine's voice on the kernel's bus."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from orchestrata_memory.interfaces import FactEmitter, Kernel, Severity, SystemEvent, Topic
from orchestrata_memory.models import SYSTEM_VOLK

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 5.0


class Notices:
    """Emits events and facts; a bus that fails or hangs never fails an operation."""

    def __init__(self, kernel: Kernel, facts: FactEmitter) -> None:
        self._kernel = kernel
        self._facts = facts

    async def emit(
        self, topic: Topic, payload: dict[str, Any], *, severity: Severity = Severity.INFO
    ) -> None:
        """Emit one event; `payload` holds keys, ids and counts, never content."""
        event = SystemEvent(type=topic, source=SYSTEM_VOLK, payload=payload, severity=severity)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._kernel.emit_event(event)
        except Exception as error:  # noqa: BLE001 - a foreign bus may raise anything
            log.warning("the event %s was not delivered: %s", topic, type(error).__name__)

    async def fact(self, session_id: str, name: str, value: int | str) -> None:
        """Record a fact of a session."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._facts.emit_fact(session_id, name, value)
        except Exception as error:  # noqa: BLE001 - as above
            log.warning("the fact %s was not recorded: %s", name, type(error).__name__)
