"""An event bus inside one process."""

from __future__ import annotations

import asyncio
import logging

from orchestrata_memory.interfaces import EventHandler, SystemEvent

logger = logging.getLogger(__name__)


class InProcessEventBus:
    """Delivers each event to every handler of its type, at the same time, in this event loop.

    Implements `EventBus`. A handler that raises is logged by its subscriber's id and the kind of
    error, without the event's payload and without the error's text, either of which could carry
    what is not the log reader's to see.
    """

    def __init__(self) -> None:
        self._handlers: dict[str, dict[str, EventHandler]] = {}

    async def subscribe(
        self, event_type: str, handler: EventHandler, *, subscriber_id: str
    ) -> None:
        """Call `handler` for each event of the type.

        One subscriber has one handler a type: subscribing again replaces it.
        """
        self._handlers.setdefault(event_type, {})[subscriber_id] = handler

    async def unsubscribe(self, event_type: str, *, subscriber_id: str) -> None:
        """Forget the subscription; an event that is being delivered may still arrive."""
        handlers = self._handlers.get(event_type, {})
        handlers.pop(subscriber_id, None)
        if not handlers:
            self._handlers.pop(event_type, None)

    async def publish(self, event: SystemEvent) -> None:
        """Deliver an event and return when every handler has run.

        A handler may publish, subscribe and unsubscribe itself. When the publisher is cancelled,
        so are the handlers that still run.
        """
        handlers = tuple(self._handlers.get(event.type, {}).items())
        async with asyncio.TaskGroup() as group:
            for subscriber_id, handler in handlers:
                group.create_task(_deliver(event, subscriber_id, handler))


async def _deliver(event: SystemEvent, subscriber_id: str, handler: EventHandler) -> None:
    try:
        await handler(event)
    except Exception as error:  # noqa: BLE001 - one handler's failure is not the others'
        logger.error(  # noqa: TRY400 - a traceback could show the payload
            "the handler of %s for %s raised %s", subscriber_id, event.type, type(error).__name__
        )
