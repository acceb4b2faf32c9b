"""The in-process bus, the facts and the kernel's lifecycle."""

from __future__ import annotations

import asyncio
import logging

import pytest
from dependency_injector import providers

from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.interfaces import (
    ComponentHealth,
    ComponentType,
    HealthStatus,
    IComponent,
    SystemEvent,
)
from orchestrata_memory.kernel import (
    ConfiguredDirectory,
    EventFactEmitter,
    InProcessEventBus,
    InProcessKernel,
)


def event(kind: str = "a.b", **payload: object) -> SystemEvent:
    return SystemEvent(type=kind, source="TEST", payload=payload)


class Recorder:
    def __init__(self) -> None:
        self.seen: list[SystemEvent] = []

    async def __call__(self, received: SystemEvent) -> None:
        self.seen.append(received)


async def test_an_event_reaches_every_handler_of_its_exact_type() -> None:
    bus, first, second, other = InProcessEventBus(), Recorder(), Recorder(), Recorder()
    await bus.subscribe("a.b", first, subscriber_id="one")
    await bus.subscribe("a.b", second, subscriber_id="two")
    await bus.subscribe("a.bc", other, subscriber_id="one")
    sent = event()
    await bus.publish(sent)
    assert (first.seen, second.seen, other.seen) == ([sent], [sent], [])


async def test_a_raising_handler_harms_nobody_and_tells_no_payload(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus, after = InProcessEventBus(), Recorder()

    async def broken(received: SystemEvent) -> None:
        raise ValueError(f"cannot take {received.payload}")

    await bus.subscribe("a.b", broken, subscriber_id="one")
    await bus.subscribe("a.b", after, subscriber_id="two")
    with caplog.at_level(logging.DEBUG):
        await bus.publish(event(text="canary-4711"))
    assert len(after.seen) == 1
    assert "the handler of one for a.b raised ValueError" in caplog.text
    assert "canary-4711" not in caplog.text


async def test_one_subscriber_has_one_handler_a_type() -> None:
    bus, old, new = InProcessEventBus(), Recorder(), Recorder()
    await bus.subscribe("a.b", old, subscriber_id="one")
    await bus.subscribe("a.b", new, subscriber_id="one")
    await bus.publish(event())
    assert (len(old.seen), len(new.seen)) == (0, 1)

    await bus.unsubscribe("a.b", subscriber_id="one")
    await bus.unsubscribe("a.b", subscriber_id="one")
    await bus.publish(event())
    assert len(new.seen) == 1


async def test_handlers_run_beside_each_other_and_may_use_the_bus() -> None:
    bus, answers = InProcessEventBus(), Recorder()
    met = asyncio.Barrier(2)

    async def meet(_: SystemEvent) -> None:
        await asyncio.wait_for(met.wait(), 5)
        await bus.unsubscribe("a.b", subscriber_id="one")
        await bus.publish(event("answer"))

    await bus.subscribe("answer", answers, subscriber_id="one")
    await bus.subscribe("a.b", meet, subscriber_id="one")
    await bus.subscribe("a.b", meet, subscriber_id="two")
    await bus.publish(event())
    assert len(answers.seen) == 2


async def test_cancelling_the_publisher_cancels_its_handlers() -> None:
    bus, started, ended = InProcessEventBus(), asyncio.Event(), asyncio.Event()

    async def slow(_: SystemEvent) -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    await bus.subscribe("a.b", slow, subscriber_id="one")
    publishing = asyncio.create_task(bus.publish(event()))
    await started.wait()
    publishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await publishing
    assert ended.is_set()


async def test_facts_of_a_session_are_events() -> None:
    kernel, facts = InProcessKernel(), Recorder()
    await kernel.event_bus.subscribe("session.fact", facts, subscriber_id="one")
    await EventFactEmitter(kernel).emit_fact("s1", "memories_migrated", 3)
    [fact] = facts.seen
    assert fact.source == "SYS:MEMORY"
    assert fact.payload == {"session_id": "s1", "name": "memories_migrated", "value": 3}


async def test_the_configured_directory_names_volks_and_roles() -> None:
    settings = GovernanceSettings(volks={"ENG:A": ("team_lead",), "ENG:B": ()})
    directory = ConfiguredDirectory(settings)
    assert await directory.volks() == {"ENG:A": frozenset({"team_lead"}), "ENG:B": frozenset()}
    assert await directory.revision() == await directory.revision()


class Probe(IComponent):
    """Records its lifecycle; fails at `start` on request."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls: list[str] = []
        self._fails = fails

    async def initialize(self) -> None:
        self.calls.append("initialize")

    async def start(self) -> None:
        self.calls.append("start")
        if self._fails:
            raise RuntimeError("no")

    async def stop(self) -> None:
        self.calls.append("stop")

    async def get_health(self) -> ComponentHealth:
        return ComponentHealth(status=HealthStatus.HEALTHY)


@pytest.mark.traces("REQ-010-002")
async def test_the_kernel_runs_what_its_container_holds() -> None:
    kernel, probe = InProcessKernel(), Probe()
    kernel.container.set_provider(ComponentType.MEMORY_ENGINE.value, providers.Object(probe))
    async with kernel:
        await kernel.start()
        assert kernel.component(ComponentType.MEMORY_ENGINE) is probe
        assert probe.calls == ["initialize", "start"]
    await kernel.stop()
    assert probe.calls == ["initialize", "start", "stop"]


async def test_a_component_that_does_not_start_is_stopped_again() -> None:
    kernel, probe = InProcessKernel(), Probe(fails=True)
    kernel.container.set_provider(ComponentType.MEMORY_ENGINE.value, providers.Object(probe))
    with pytest.raises(RuntimeError, match="no"):
        await kernel.start()
    assert probe.calls == ["initialize", "start", "stop"]


async def test_a_component_nobody_registered_is_named() -> None:
    with pytest.raises(LookupError, match="memory_engine"):
        InProcessKernel().component(ComponentType.MEMORY_ENGINE)
