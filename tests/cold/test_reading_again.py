"""What a store has read and kept never hides what another one has written since."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from neo4j.exceptions import ServiceUnavailable

from orchestrata_memory.cold.base import ColdDelete, ColdHit, Readable
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.cold.vector_index import VectorIndex
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import MemoryClassification
from tests.cold.builders import ALPHA, BETA, asked, opened, put, random_vectors, unit
from tests.servers.graph import GraphServer

pytestmark = pytest.mark.servers


async def hits(store: GraphColdStore, **changes: Any) -> dict[str, ColdHit]:
    found = await store.candidates(asked(terms=("alpha",), **changes))
    return {hit.record.key: hit for hit in found.hits}


async def test_changes_of_another_store_are_seen_at_once(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    first, second = random_vectors(2)
    shared = {"shared_with": (BETA,)}
    await store.apply([put(f"m{n}", vector=first, **shared) for n in range(4)])
    for _ in range(2):
        assert len(await hits(store, vector=first)) == 4
        assert len(await hits(store, vector=first, readable=Readable(volk_id=BETA))) == 4
    async with opened(clean_graph) as other:
        await other.apply(
            [
                put("m0", version=2, terms="alpha beta", content="other words", vector=second),
                put("m1", version=2, vector=first, shared_with=()),
                ColdDelete(key="m2", version=2),
                put("m3", version=2, vector=first, classification=MemoryClassification.SYSTEM),
            ]
        )
        found = await hits(store, vector=first)
        assert found.keys() == {"m0", "m1", "m3"}
        assert found["m0"].record.content == "other words"
        assert found["m0"].document.terms == ("alpha", "beta")
        assert found["m0"].cosine == pytest.approx(float(first @ second), abs=1e-5)
        assert found["m1"].record.shared_with == ()
        assert found["m3"].record.classification is MemoryClassification.SYSTEM
        assert (await hits(store, readable=Readable(volk_id=BETA))).keys() == {"m3"}
        await other.apply([put("m2", version=3, content="again", vector=first)])
        assert (await hits(store))["m2"].record.content == "again"


async def test_vectors_that_come_later_are_seen(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    first, second = random_vectors(2)
    await store.apply([put("m")])
    assert (await hits(store, vector=first))["m"].cosine is None
    async with opened(clean_graph) as other:
        for model, vector in (("one", first), ("another", unit(first + second))):
            await other.attach_vectors(
                {"m": StoredVector(version=1, model=model, vector=vector, tokens=None)}
            )
            for _ in range(2):
                hit = (await hits(store, vector=first))["m"]
                assert hit.document.model == model
                assert hit.cosine == pytest.approx(float(vector @ first), abs=1e-5)


async def test_neighbours_are_seen_as_they_are(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    await store.apply([put("m", position=2)])
    place = [("session-1", ALPHA, 2)]
    assert [hit.record.content for hit in await store.neighbours(place, None)] == ["content of m"]
    async with opened(clean_graph) as other:
        await other.apply([put("m", position=2, version=2, content="changed")])
        assert [hit.record.content for hit in await store.neighbours(place, None)] == ["changed"]
        await other.apply([ColdDelete(key="m", version=3)])
        assert await store.neighbours(place, None) == []


async def test_what_changes_while_it_is_read_is_not_kept(
    store: GraphColdStore, clean_graph: GraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look-up and the reading: the look-up's state must not name what was read."""
    await store.apply([put("m")])
    read = GraphConnection.read
    async with opened(clean_graph) as other:

        async def overtaken(self: GraphConnection, text: str, parameters: Any) -> Any:
            if "$keys AS key" in text and "token_vectors" in text:
                monkeypatch.setattr(GraphConnection, "read", read)
                await other.apply([put("m", version=2, content="changed")])
            return await read(self, text, parameters)

        monkeypatch.setattr(GraphConnection, "read", overtaken)
        await hits(store)
        assert (await hits(store))["m"].record.content == "changed"


# --- the vector index ---------------------------------------------------------------------------
async def until_ready(index: VectorIndex) -> None:
    async with asyncio.timeout(60):
        while not index.ready:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [ServiceUnavailable("away"), TimeoutError(), KeyError("odd")])
async def test_a_vector_index_that_fails_is_asked_again_or_left_to_searches(
    clean_graph: GraphServer, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("orchestrata_memory.cold.vector_index._PAUSE_SECONDS", 0.01)
    failures: list[Exception] = [error, error]
    at_length = GraphConnection.at_length

    async def failing(self: GraphConnection, text: str, parameters: Any) -> Any:
        if "db.index.vector" in text and failures:
            raise failures.pop()
        return await at_length(self, text, parameters)

    monkeypatch.setattr(GraphConnection, "at_length", failing)
    async with opened(clean_graph) as store:
        await until_ready(store._parts.vector_index)
        assert (failures == []) == (not isinstance(error, KeyError))


async def test_closing_ends_the_waiting(
    clean_graph: GraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hanging(_self: GraphConnection, text: str, _parameters: Any) -> Any:
        if "db.index.vector" in text:
            await asyncio.Event().wait()
        return []

    async with opened(clean_graph) as store:
        index = store._parts.vector_index
        await until_ready(index)
        monkeypatch.setattr(GraphConnection, "at_length", hanging)
        index.start()
        assert not index.ready
        assert any("vector index" in task.get_name() for task in asyncio.all_tasks())
    assert not any("vector index" in task.get_name() for task in asyncio.all_tasks())
