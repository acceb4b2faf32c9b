"""Hearing what the engine says, also while somebody else hears it."""

from types import SimpleNamespace

from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.hearing import hearing
from orchestrata_memory.cli.missing import degraded_note, nothing_found
from orchestrata_memory.interfaces import SystemEvent, Topic
from orchestrata_memory.kernel import InProcessKernel

TOPIC = Topic.SEARCH_COMPLETED


async def test_an_inner_hearing_does_not_end_the_outer_one():
    kernel = InProcessKernel()
    engine = SimpleNamespace(kernel=kernel)

    async with hearing(engine, TOPIC) as outer:
        async with hearing(engine, TOPIC) as inner:
            await kernel.emit_event(SystemEvent(type=TOPIC, source="x"))
        await kernel.emit_event(SystemEvent(type=TOPIC, source="x"))
    await kernel.emit_event(SystemEvent(type=TOPIC, source="x"))

    assert (len(outer), len(inner)) == (2, 1)


def test_what_is_missing_decides_what_finding_nothing_means():
    assert nothing_found(None) is ExitCode.NOTHING
    assert nothing_found("graph") is ExitCode.UNAVAILABLE
    assert nothing_found("embedding, graph") is ExitCode.UNAVAILABLE
    assert nothing_found("embedding") is ExitCode.CONFIGURATION


def test_each_thing_that_is_missing_is_told_as_what_it_is():
    def told(missing):
        return " ".join(str(note) for note in degraded_note(missing))

    assert told(None) == ""
    assert "graph" in told("graph")
    assert "only by words" not in told("graph")
    assert "only by words" in told("embedding")
    assert "did not answer" not in told("embedding")
    assert "without graph" in told("embedding, graph")
    assert "only by words" in told("embedding, graph")
