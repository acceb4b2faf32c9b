"""The kernel's event bus as the engine needs it, and the topics it uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol


class Severity(StrEnum):
    """How much an event matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Topic(StrEnum):
    """Event types the engine emits or listens to. Payloads never carry content."""

    SESSION_CLOSED = "session.closed"
    STORE_COMPLETED = "memory.store.completed"
    RETRIEVE_COMPLETED = "memory.retrieve.completed"
    SEARCH_COMPLETED = "memory.search.completed"
    SUMMARIZE_COMPLETED = "memory.summarize.completed"
    MIGRATE_COMPLETED = "memory.migrate.completed"
    MIGRATE_FAILED = "memory.migrate.failed"
    BUDGET_WARNING = "memory.budget.warning"
    ACCESS_DENIED = "memory.access.denied"
    SESSION_FACT = "session.fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemEvent:
    """One event on the bus.

    Attributes:
        type: A topic, such as ``memory.store.completed``.
        source: Who emits it; the engine is ``SYS:MEMORY``.
        payload: Keys, ids and counts.
        severity: See `Severity`.
        at: Aware, UTC.
    """

    type: str
    source: str
    payload: dict[str, Any] = field(default_factory=dict)
    severity: str = Severity.INFO
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


EventHandler = Callable[[SystemEvent], Awaitable[None]]


class EventBus(Protocol):
    """Publish and subscribe by exact event type.

    A handler that raises must not keep an event from other handlers or its emitter.
    """

    async def subscribe(
        self, event_type: str, handler: EventHandler, *, subscriber_id: str
    ) -> None:
        """Call `handler` for each event of the type; once per (type, subscriber_id)."""
        ...

    async def unsubscribe(self, event_type: str, *, subscriber_id: str) -> None:
        """Forget the subscription; nothing happens when there is none."""
        ...

    async def publish(self, event: SystemEvent) -> None:
        """Deliver to every handler of the type; returns when all have run."""
        ...


class Kernel(Protocol):
    """What the engine needs of a kernel."""

    @property
    def event_bus(self) -> EventBus:
        """The kernel's bus."""
        ...

    async def emit_event(self, event: SystemEvent) -> None:
        """Publish an event on the kernel's bus."""
        ...


class FactEmitter(Protocol):
    """Records a fact of a session, such as how many memories migrated."""

    async def emit_fact(self, session_id: str, name: str, value: int | str) -> None:
        """Record one fact; must not raise for a session it does not know."""
        ...
