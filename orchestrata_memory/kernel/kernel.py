"""A kernel inside one process: a bus, a container, and the lifecycle of what is registered."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from dependency_injector import containers, providers

from orchestrata_memory.interfaces import (
    ComponentType,
    EventBus,
    IComponent,
    SystemEvent,
    VolkDirectory,
)
from orchestrata_memory.kernel.bus import InProcessEventBus


class InProcessKernel:
    """What the engine needs of a kernel, for running without one.

    Attributes:
        container: Components by `ComponentType`; anything else a host wants to inject.
        directory: The kernel's own directory of Volks; None: the engine uses its configuration's.

    Traces: REQ-010-002
    """

    def __init__(
        self, *, event_bus: EventBus | None = None, directory: VolkDirectory | None = None
    ) -> None:
        self._event_bus = event_bus or InProcessEventBus()
        self.container = containers.DynamicContainer()
        self.directory = directory
        self._running: AsyncExitStack | None = None

    @property
    def event_bus(self) -> EventBus:
        """The kernel's bus."""
        return self._event_bus

    async def emit_event(self, event: SystemEvent) -> None:
        """Publish an event on the bus."""
        await self._event_bus.publish(event)

    def component(self, kind: ComponentType) -> IComponent:
        """The registered component of a kind.

        Raises:
            LookupError: None is registered.
        """
        provider: providers.Provider[IComponent] | None = self.container.providers.get(kind.value)
        if provider is None:
            raise LookupError(f"no component is registered as {kind.value!r}")
        return provider()

    async def start(self) -> None:
        """Initialize, then start, every registered component; idempotent.

        When one fails, those before it are stopped again.
        """
        if self._running is not None:
            return
        components = [
            self.component(kind) for kind in ComponentType if kind.value in self.container.providers
        ]
        async with AsyncExitStack() as stack:
            for component in components:
                stack.push_async_callback(component.stop)
                await component.initialize()
            for component in components:
                await component.start()
            self._running = stack.pop_all()

    async def stop(self) -> None:
        """Stop every component, the last first; idempotent."""
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()
