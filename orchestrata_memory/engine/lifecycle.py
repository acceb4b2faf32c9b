"""The engine's lifecycle: from servers and parts to a running component, and back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Self

from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.embedded.servers import EmbeddedAddresses
from orchestrata_memory.engine.background import to_the_end
from orchestrata_memory.engine.doorway import Clock, utc_now
from orchestrata_memory.engine.health import gather_health, graph_answers
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.engine.parts import Parts, ServerSource
from orchestrata_memory.engine.wiring import Wired, wire
from orchestrata_memory.errors import (
    MemoryEngineError,
    MemoryLifecycleError,
    MemoryUnavailableError,
)
from orchestrata_memory.interfaces import (
    ComponentHealth,
    FactEmitter,
    HealthStatus,
    IComponent,
    Kernel,
    SystemEvent,
    Topic,
)
from orchestrata_memory.models import SYSTEM_VOLK

log = logging.getLogger(__name__)

_AWAY_SECONDS = 2.5
"""How long stopping waits for a graph that does not answer, from asking it to giving the draining
up: the outbox is safe without."""


class Phase(Enum):
    """Where an engine stands in its life."""

    NEW = auto()
    INITIALIZED = auto()
    RUNNING = auto()
    STOPPED = auto()


class EngineLifecycle(IComponent):
    """Everything of an engine but its operations.

    Args:
        settings: Everything under ``runtime.memory_engine``.
        kernel: Offers the event bus.
        facts: Records facts of a session.
        servers: Starts embedded servers where none are configured.
        assemble: Builds the parts once the servers' addresses are known.
        clock: Aware UTC now.

    Traces: REQ-010-003
    """

    def __init__(
        self,
        *,
        settings: MemoryEngineSettings,
        kernel: Kernel,
        facts: FactEmitter,
        servers: ServerSource,
        assemble: Callable[[EmbeddedAddresses], Parts],
        clock: Clock = utc_now,
    ) -> None:
        self.settings = settings
        self.kernel = kernel
        self._servers = servers
        self._assemble = assemble
        self._clock = clock
        self._notices = Notices(kernel, facts)
        self._phase = Phase.NEW
        self._changing_phase = asyncio.Lock()
        self._parts: Parts | None = None
        self._operations: Wired | None = None

    # --- lifecycle -----------------------------------------------------------------------
    async def initialize(self) -> None:
        """Start or reach the servers, prepare every part, subscribe to `session.closed`.

        Raises:
            MemoryConfigurationError: Something is missing or unsafe; says what to do.
            MemoryGovernanceError: The rules cannot be loaded.
            MemoryLifecycleError: The engine was stopped.
        """
        async with self._changing_phase:
            if self._phase is Phase.STOPPED:
                raise MemoryLifecycleError("a stopped engine is not used again: make a new one")
            if self._phase is not Phase.NEW:
                return
            try:
                await self._open()
            except BaseException:
                await to_the_end(self._close())
                raise
            self._phase = Phase.INITIALIZED

    async def _open(self) -> None:
        parts = self._parts = self._assemble(await self._servers.start())
        await parts.governance.open()
        await parts.hot.open()
        await parts.embedder.open()
        self._operations = wire(
            parts,
            self.settings,
            self._notices,
            ensure_running=self._ensure_running,
            clock=self._clock,
        )
        try:
            await self._operations.upkeep.reach_graph()
        except MemoryUnavailableError as error:
            # Hot works without it; upkeep goes on trying.
            log.warning("starting without the graph: %s", error)
            await parts.delegations.refresh()
        await self.kernel.event_bus.subscribe(
            Topic.SESSION_CLOSED, self._on_session_closed, subscriber_id=SYSTEM_VOLK
        )

    async def start(self) -> None:
        """Start the background work; from here on operations are accepted.

        Raises:
            MemoryLifecycleError: `initialize` has not been called, or the engine was stopped.
        """
        async with self._changing_phase:
            if self._phase is Phase.RUNNING:
                return
            if self._phase is not Phase.INITIALIZED:
                raise MemoryLifecycleError("call initialize() before start()")
            self.parts.audit.start()
            self._wired.worker.start()
            self._wired.upkeep.start()
            self._wired.warm_up.start()
            self._phase = Phase.RUNNING

    async def stop(self) -> None:
        """Refuse new operations, drain what was accepted, end the background work, disconnect.

        What cannot be drained within the configured time stays in the outbox, safe; for a graph
        that does not answer, that time is `_AWAY_SECONDS` at most.
        """
        async with self._changing_phase:
            was_running = self._phase is Phase.RUNNING
            already = self._phase is Phase.STOPPED
            self._phase = Phase.STOPPED
            if already:
                return
            try:
                if self._operations is not None:
                    await self.kernel.event_bus.unsubscribe(
                        Topic.SESSION_CLOSED, subscriber_id=SYSTEM_VOLK
                    )
                if was_running:
                    await self._drain(self.settings.worker.drain_timeout_seconds)
            finally:
                await to_the_end(self._close())

    async def _drain(self, timeout_seconds: float) -> None:
        away_until = time.monotonic() + _AWAY_SECONDS
        try:
            if not await graph_answers(self.parts, _AWAY_SECONDS):
                left = max(0.0, away_until - time.monotonic())
                timeout_seconds = min(timeout_seconds, left)
            if not await self._settle(timeout_seconds):
                log.warning("stopping with an outbox that is not empty; it goes on at next start")
        except MemoryEngineError as error:
            log.warning("stopping without having drained: %s", error)

    async def _close(self) -> None:
        """Close what was opened, whatever fails on the way."""
        steps: list[Callable[[], Any]] = []
        if self._operations is not None:
            steps += [
                self._operations.warm_up.stop,
                self._operations.favours.stop,
                self._operations.worker.stop,
                self._operations.upkeep.stop,
                self._notices.stop,
            ]
        if self._parts is not None:
            steps += [
                self._parts.index.close,
                self._parts.audit.stop,
                *[
                    part.close
                    for part in (self._parts.abstractive, self._parts.token_check)
                    if part
                ],
                self._parts.embedder.close,
                self._parts.cold.close,
                self._parts.hot.close,
                self._parts.governance.close,
            ]
        for step in [*steps, self._servers.stop]:
            try:
                await step()
            except Exception as error:  # noqa: BLE001 - the other parts must be closed too
                log.warning("closing a part failed: %s", type(error).__name__)

    async def __aenter__(self) -> Self:
        await self.initialize()
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def get_health(self) -> ComponentHealth:
        """Health of each part, with the lag of the cold tier; never raises."""
        if self._phase in {Phase.NEW, Phase.STOPPED} or self._operations is None:
            return ComponentHealth(status=HealthStatus.STOPPED)
        return await gather_health(self.parts, self._operations)

    @property
    def parts(self) -> Parts:
        """The parts, for inspection and measurement.

        Raises:
            MemoryLifecycleError: `initialize` has not been called.
        """
        if self._parts is None:
            raise MemoryLifecycleError("call initialize() first")
        return self._parts

    @property
    def _wired(self) -> Wired:
        if self._operations is None:
            raise MemoryLifecycleError("call initialize() and start() first")
        return self._operations

    def _ensure_running(self) -> None:
        if self._phase is Phase.RUNNING:
            return
        hint = "was stopped" if self._phase is Phase.STOPPED else "is not started"
        raise MemoryLifecycleError(f"the memory engine {hint}")

    async def _on_session_closed(self, event: SystemEvent) -> None:
        await self._wired.closing.on_session_closed(event)

    async def _settle(self, timeout_seconds: float) -> bool:
        deadline = time.monotonic() + timeout_seconds
        written = await self._written(timeout_seconds)
        drained = await self._wired.worker.drain(deadline - time.monotonic())
        if drained and written:
            await self._wired.upkeep.drain_audit()
        return drained and written

    async def _written(self, timeout_seconds: float) -> bool:
        """Wait for what is done after answers; False when it takes too long."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._wired.favours.join()
                await self.parts.audit.flush()
        except TimeoutError:
            return False
        return True
