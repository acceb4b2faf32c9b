"""The engine's voice on the kernel's bus.

A notice is sent after what it tells of. A bus that takes it at once has it before the operation
answers; for another the operation does not wait: the notice is delivered in the background, each
topic's in their order. A bus that does not keep up loses what exceeds a limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from orchestrata_memory.interfaces import FactEmitter, Kernel, Severity, SystemEvent, Topic
from orchestrata_memory.models import SYSTEM_VOLK

log = logging.getLogger(__name__)

_GRACE_SECONDS = 0.05
"""How long an operation waits for the delivery of its notice."""

_PATIENCE_SECONDS = 5.0
"""How long a delivery may take before it is given up."""

_STOP_SECONDS = 2.0
"""How long stopping waits for all that is still to be delivered."""

_MOST_WAITING = 1000

_delivery: ContextVar[asyncio.Task[None] | None] = ContextVar("delivery", default=None)
"""The delivery in which a subscriber's handler runs."""


class Notices:
    """Emits events and facts; a bus that fails or hangs never fails or delays an operation."""

    def __init__(self, kernel: Kernel, facts: FactEmitter) -> None:
        self._kernel = kernel
        self._facts = facts
        self._turns: defaultdict[Topic, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: set[asyncio.Task[None]] = set()
        self._late: dict[Topic, asyncio.Task[None]] = {}
        self._dropped = 0

    async def emit(
        self, topic: Topic, payload: dict[str, Any], *, severity: Severity = Severity.INFO
    ) -> None:
        """Emit one event; `payload` holds keys, ids and counts, never content."""
        event = SystemEvent(type=topic, source=SYSTEM_VOLK, payload=payload, severity=severity)
        await self._send(topic, lambda: self._kernel.emit_event(event))

    async def fact(self, session_id: str, name: str, value: int | str) -> None:
        """Record a fact of a session."""
        await self._send(Topic.SESSION_FACT, lambda: self._facts.emit_fact(session_id, name, value))

    async def stop(self) -> None:
        """Wait for what is to be delivered, for `_STOP_SECONDS` at most; the rest is dropped."""
        waiting = self._waiting - {_delivery.get()}  # a handler does not wait for itself
        if not waiting:
            return
        _, left = await asyncio.wait(waiting, timeout=_STOP_SECONDS)
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_GRACE_SECONDS)
        log.warning("%d notices were not delivered before the end", len(left))

    async def _send(self, topic: Topic, deliver: Callable[[], Awaitable[None]]) -> None:
        if not self._has_room():
            return
        # A task of the caller's context: that is where its handlers have always been run.
        task = asyncio.create_task(
            self._in_turn(topic, deliver), name=f"orchestrata-memory notice {topic}"
        )
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        if _is_under_way(self._late.get(topic)) or _is_under_way(_delivery.get()):
            return
        _, late = await asyncio.wait({task}, timeout=_GRACE_SECONDS)
        if late:
            self._late[topic] = task

    def _has_room(self) -> bool:
        if len(self._waiting) >= _MOST_WAITING:
            if not self._dropped:
                log.warning("the bus does not keep up: notices are dropped")
            self._dropped += 1
            return False
        if self._dropped:
            log.warning("%d notices were dropped, as the bus did not keep up", self._dropped)
            self._dropped = 0
        return True

    async def _in_turn(self, topic: Topic, deliver: Callable[[], Awaitable[None]]) -> None:
        _delivery.set(asyncio.current_task())
        async with self._turns[topic]:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await deliver()
            except Exception as error:  # noqa: BLE001 - a foreign bus may raise anything
                log.warning("a notice of %s was not delivered: %s", topic, type(error).__name__)


def _is_under_way(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done()
