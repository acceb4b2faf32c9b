"""What each operation costs: round trips to Redis, statements to the graph, calls of the model.

Timings depend on the machine, these do not. Background work only ever adds, so the least of some
repetitions is the operation's own.
"""

import uuid

import pytest

from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.models import MemoryScope, memory_context

pytestmark = pytest.mark.servers

REPETITIONS = 12


class Costs:
    def __init__(self, engine, monkeypatch):
        self._parts = engine.parts
        self._statements = 0
        for name in ("read", "write"):
            self._count(name, monkeypatch)

    def _count(self, name, monkeypatch):
        original = getattr(GraphConnection, name)

        async def counted(connection, *arguments, **more):
            self._statements += 1
            return await original(connection, *arguments, **more)

        monkeypatch.setattr(GraphConnection, name, counted)

    def now(self):
        parts = self._parts
        return parts.hot.round_trips, self._statements, parts.embedder.model_calls

    async def of(self, operate, arguments):
        """The least (Redis round trips, graph statements, model calls) of one operation."""
        taken = []
        for argument in arguments:
            before = self.now()
            await operate(argument)
            taken.append([b - a for a, b in zip(before, self.now(), strict=True)])
        return tuple(min(column) for column in zip(*taken, strict=True))


@pytest.fixture
async def place(bench_environment):
    async with bench_environment(promote=False) as opened:
        with memory_context(opened.caller("costs", project_id="costs")):
            yield opened


def texts(what):
    return [f"{what} number {number} of {uuid.uuid4()}" for number in range(REPETITIONS)]


@pytest.mark.traces("REQ-010-051", "REQ-010-052")
async def test_a_hot_store_is_one_round_trip_and_a_retrieve_two_side_by_side(place, monkeypatch):
    costs = Costs(place.engine, monkeypatch)
    keys = []

    async def store(text):
        keys.append((await place.engine.store(text)).key)

    assert await costs.of(store, texts("note")) == (1, 0, 0)
    assert await costs.of(place.engine.retrieve, keys) == (2, 0, 0)


@pytest.mark.traces("REQ-010-053")
async def test_a_hot_search_asks_the_model_once_and_the_graph_never(place, monkeypatch):
    for text in texts("memory"):
        await place.engine.store(text)
    await place.engine.settle()
    costs = Costs(place.engine, monkeypatch)

    async def search(query):
        scope = MemoryScope(session_id="costs")
        assert await place.engine.search(query, scope=scope, min_similarity=0)

    round_trips, statements, model_calls = await costs.of(search, texts("fresh query, memory"))
    assert model_calls == 1
    assert statements == 0
    assert round_trips <= 6


@pytest.mark.traces("REQ-010-054")
async def test_a_cold_retrieve_asks_each_tier_for_record_and_vector(place, monkeypatch):
    keys = [(await place.engine.store(text)).key for text in texts("memory")]
    await place.engine.close_session("costs")
    costs = Costs(place.engine, monkeypatch)

    assert await costs.of(place.engine.retrieve, keys) == (2, 2, 0)


@pytest.mark.traces("REQ-010-055")
async def test_a_cold_search_asks_the_model_once_and_the_graph_a_few_times(place, monkeypatch):
    for text in texts("memory"):
        await place.engine.store(text)
    await place.engine.close_session("costs")
    costs = Costs(place.engine, monkeypatch)

    async def search(query):
        scope = MemoryScope(project_id="costs")
        assert await place.engine.search(query, scope=scope, min_similarity=0)

    round_trips, statements, model_calls = await costs.of(search, texts("fresh query, memory"))
    assert model_calls == 1
    assert 0 < statements <= 10
    assert round_trips <= 6


async def test_asking_again_calls_no_model(place, monkeypatch):
    await place.engine.store("the only memory")
    await place.engine.settle()
    await place.engine.search("which memory is the only one")
    costs = Costs(place.engine, monkeypatch)

    again = ["which memory is the only one"] * 3
    assert (await costs.of(place.engine.search, again))[2] == 0
