"""Writes: guarded, idempotent, complete with their links, and never more than their own harm."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from orchestrata_memory.cold.base import ColdDelete, ColdVersion
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.config.settings import GraphSettings
from orchestrata_memory.errors import MemoryStorageError
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import MemoryClassification
from tests.cold.builders import (
    ALPHA,
    BETA,
    DIMENSION,
    address_of,
    asked,
    links,
    put,
    random_vectors,
    record,
    rows,
    unit,
)
from tests.servers.graph import GraphServer

pytestmark = pytest.mark.servers

DERIVED = "DERIVED_FROM"
AWAITED = "MATCH (a:MemoryAnchor) WHERE a.summaries IS NOT NULL RETURN a.key"
HOSTILE = [
    "quotes ' \" ` and braces {} [] $key",
    "lines\nand\ttabs\r\nand \\ backslashes \\u0000",
    "dog AND ( OR NOT a:b ~1 ^2 *?",
    "漢字とかな 한국어",
    "🦊 family 👩‍👩‍👧 flag 🇩🇪",
    "שלום עולם مرحبا",
    "'}) DETACH DELETE m //",
]


@pytest.mark.traces("REQ-010-004", "REQ-010-028")
@pytest.mark.parametrize("text", HOSTILE)
async def test_a_record_comes_back_as_it_was(store: GraphColdStore, text: str) -> None:
    name = text.replace("\n", " ").replace("\r", " ").replace("\t", " ")
    made = record(
        f"key {name}",
        content=text,
        summary=f"short {text}",
        tags=(name, "b"),
        metadata={"speaker": name, text: [1, 2.5, None, {"deep": True}], "relevance": 1},
        classification=MemoryClassification.SYSTEM,
        volk_id=f"volk {name}",
        session_id=f"session {name}",
        task_id=f"task {name}",
        project_id=f"project {name}",
        portfolio_id=f"portfolio {name}",
        token_count=7,
        version=3,
        shared_with=(f"other {name}",),
        position=4,
        sources=("source",),
        source_versions=(2,),
    )
    assert await store.apply([put(made, terms=text)]) == {}
    assert await store.get([made.key, "unknown"]) == {made.key: made}


@pytest.mark.traces("REQ-010-004")
async def test_ids_of_512_bytes_work_on_every_path(store: GraphColdStore) -> None:
    long = "é" * 256
    made = record(long, session_id=long, volk_id=long, task_id=long, project_id=long, position=1)
    assert await store.apply([put(made, terms="x" * 300, vector=random_vectors(1)[0])]) == {}
    assert await store.get([long]) == {long: made}
    assert len(await store.neighbours([(long, long, 1)], None)) == 1
    found = await store.candidates(asked(terms=("x" * 300,)))
    assert [hit.record.key for hit in found.hits] == [long]


async def test_a_node_carries_every_hash_field(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    made = record("k", tags=("x", "y"), metadata={"n": 1}, summary="s", task_id="t", project_id="p")
    await store.apply([put(replace(made, portfolio_id="f"))])
    [[node]] = rows(clean_graph, "MATCH (m:Memory {key: 'k'}) RETURN m")
    assert set(node) >= {
        *("content", "summary", "tags", "metadata", "classification", "volk_id", "session_id"),
        *("task_id", "created_at", "updated_at", "token_count", "project_id", "portfolio_id"),
        *("version", "shared_with", "content_hash", "replica"),
    }
    assert node["tags"] == ["x", "y"]
    assert node["metadata"] == '{"n": 1}'
    assert node["created_at"] == "2026-03-01T12:00:00.000000+00:00"


@pytest.mark.traces("REQ-010-029")
async def test_a_memory_is_linked_to_all_it_belongs_to(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    await store.apply(
        [put("a", task_id="task", project_id="project", shared_with=(BETA,)), put("b")]
    )
    assert links(clean_graph, "a") == {
        ("BELONGS_TO", "session-1"),
        ("CREATED_BY", ALPHA),
        ("RELATES_TO", "task"),
        ("PART_OF", "project"),
        ("SHARED_WITH", BETA),
    }
    assert links(clean_graph, "b") == {("BELONGS_TO", "session-1"), ("CREATED_BY", ALPHA)}
    assert rows(clean_graph, "MATCH (s:Session) RETURN count(s)") == [[1]]


async def test_unsharing_takes_the_link_away(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    await store.apply([put("a", shared_with=(BETA, "ENG:GAMMA"))])
    await store.apply([put("a", version=2, shared_with=("ENG:GAMMA",))])
    shares = {end for kind, end in links(clean_graph, "a") if kind == "SHARED_WITH"}
    assert shares == {"ENG:GAMMA"}
    await store.apply([put("a", version=3)])
    assert not {end for kind, end in links(clean_graph, "a") if kind == "SHARED_WITH"}


async def test_writing_again_changes_nothing(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    batch = [
        put("a", version=2, shared_with=(BETA,), vector=random_vectors(1)[0]),
        put("s", sources=("a",), source_versions=(2,)),
        ColdDelete(key="gone", version=5),
    ]
    everything = "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN count(DISTINCT n), count(r)"
    await store.apply(batch)
    before = rows(clean_graph, everything)
    assert await store.apply(batch) == {}
    assert await store.apply(list(reversed(batch))) == {}
    assert rows(clean_graph, everything) == before


async def test_the_lower_and_the_equal_version_lose(store: GraphColdStore) -> None:
    await store.apply([put("a", version=3, content="third")])
    await store.apply([put("a", version=2, content="second")])
    await store.apply([put("a", version=3, content="other third")])
    assert (await store.get(["a"]))["a"].content == "third"
    await store.apply([ColdDelete(key="a", version=3)])
    assert (await store.versions(["a"])) == {"a": ColdVersion(version=3, deleted=False)}
    await store.apply([ColdDelete(key="a", version=4)])
    assert (await store.versions(["a", "b"])) == {"a": ColdVersion(version=4, deleted=True)}
    await store.apply([put("a", version=4)])
    assert await store.get(["a"]) == {}
    await store.apply([put("a", version=5, content="anew")])
    assert (await store.get(["a"]))["a"].content == "anew"


async def test_what_was_deleted_never_comes_back(clean_graph: GraphServer) -> None:
    """A late put and a delete of one key, through two stores at once, many times."""
    stores = [
        GraphColdStore(GraphSettings(), dimension=DIMENSION, server=address_of(clean_graph))
        for _ in range(2)
    ]
    await asyncio.gather(*(one.open() for one in stores))
    try:
        for turn in range(25):
            keys = [f"{turn}-{n}" for n in range(4)]
            puts = [put(key, session_id=f"s{turn}", shared_with=(BETA,)) for key in keys]
            deletes = [ColdDelete(key=key, version=2) for key in keys]
            problems = await asyncio.gather(
                stores[0].apply(puts), stores[1].apply(list(reversed(deletes)))
            )
            assert problems == [{}, {}]
            versions = await stores[0].versions(keys)
            assert set(versions.values()) == {ColdVersion(version=2, deleted=True)}
            assert await stores[0].get(keys) == {}
        shared = "MATCH (n:Session) RETURN n.id AS id, count(*) AS n ORDER BY n DESC LIMIT 1"
        assert all(n == 1 for _, n in rows(clean_graph, shared))
    finally:
        await asyncio.gather(*(one.close() for one in stores))


async def test_many_writers_of_one_key_leave_the_newest(store: GraphColdStore) -> None:
    batches = [
        [put("k", version=version, content=f"version {version}", project_id="p")]
        for version in range(1, 9)
    ]
    assert await asyncio.gather(*(store.apply(batch) for batch in batches)) == [{}] * 8
    assert (await store.get(["k"]))["k"].content == "version 8"


async def test_two_writers_of_one_new_session_make_one_node(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    for turn in range(10):
        writes = [
            [put(f"{turn}-{n}", session_id=f"new-{turn}", project_id=f"p-{turn}")] for n in range(3)
        ]
        await asyncio.gather(*(store.apply(batch) for batch in writes))
    twice = "MATCH (n) WHERE n.id IS NOT NULL WITH n.id AS id, count(*) AS n WHERE n > 1 RETURN id"
    assert rows(clean_graph, twice) == []


@pytest.mark.traces("REQ-010-029")
async def test_a_summary_and_its_source_written_at_once_are_linked(
    clean_graph: GraphServer,
) -> None:
    stores = [
        GraphColdStore(GraphSettings(), dimension=DIMENSION, server=address_of(clean_graph))
        for _ in range(2)
    ]
    for one in stores:
        await one.open()
    try:
        for turn in range(20):
            summary = put(f"summary-{turn}", sources=(f"b-{turn}", f"a-{turn}"))
            sources = [put(f"a-{turn}"), put(f"b-{turn}")]
            problems = await asyncio.gather(stores[0].apply([summary]), stores[1].apply(sources))
            assert problems == [{}, {}]
            ends = {end for kind, end in links(clean_graph, f"summary-{turn}") if kind == DERIVED}
            assert ends == {f"a-{turn}", f"b-{turn}"}
        assert rows(clean_graph, AWAITED) == []
    finally:
        await asyncio.gather(*(one.close() for one in stores))


async def test_a_source_that_never_came_is_no_known_memory(store: GraphColdStore) -> None:
    assert await store.apply([put("summary", sources=("absent", "summary-2"))]) == {}
    assert await store.versions(["absent", "summary"]) == {
        "summary": ColdVersion(version=1, deleted=False)
    }
    assert await store.apply([put("absent")]) == {}
    assert (await store.versions(["absent"]))["absent"].version == 1


async def test_one_bad_write_never_fails_the_others(store: GraphColdStore) -> None:
    vector = random_vectors(1)[0]
    batch = [
        put("good-1", vector=vector),
        put("no-json", metadata={"x": float("nan")}),
        put("surrogate", content="\ud800"),
        put("huge", metadata={}, token_count=2**70),
        put("short", vector=unit([1.0, 2.0])),
        put("zeros", vector=np.zeros(DIMENSION, dtype=np.float32)),
        ColdDelete(key="gone", version=1),
        put("good-2", vector=vector),
    ]
    problems = await store.apply(batch)
    assert set(problems) == {"no-json", "surrogate", "huge", "short", "zeros"}
    assert set(await store.get([f"good-{n}" for n in (1, 2)])) == {"good-1", "good-2"}
    assert (await store.versions(["gone"]))["gone"].deleted
    assert set(await store.versions(sorted(problems))) == set()
    assert not any("\ud800" in problem for problem in problems.values())


async def test_nodes_of_others_stay_as_they_are(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    rows(
        clean_graph,
        "CREATE (s:Session {id: 'session-1', owner: 'kernel'})-[:OPENED_BY]->"
        "(v:Volk {id: $volk, rank: 7}), (:Machine {id: 'session-1'}), "
        "(t:Task:Important {id: 'task', state: 'open'}), (s)-[:WORKS_ON]->(t)",
        volk=ALPHA,
    )
    await store.apply([put("a", task_id="task", project_id="p")])
    assert ("BELONGS_TO", "session-1") in links(clean_graph, "a")
    await store.apply([put("a", version=2, task_id="task")])
    await store.apply([ColdDelete(key="a", version=3)])
    [nodes] = rows(
        clean_graph,
        "MATCH (v:Volk)<-[:OPENED_BY]-(s:Session)-[:WORKS_ON]->(t:Important) RETURN s, v, t",
    )
    assert [dict(node) for node in nodes] == [
        {"id": "session-1", "owner": "kernel"},
        {"id": ALPHA, "rank": 7},
        {"id": "task", "state": "open"},
    ]
    assert rows(clean_graph, "MATCH (n:Machine) RETURN count(n)") == [[1]]
    assert rows(clean_graph, "MATCH (n:Session) RETURN count(n)") == [[1]]
    assert rows(clean_graph, "MATCH (n:Project) RETURN count(n)") == [[1]]


async def test_sessions_that_others_made_twice_break_nothing(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    rows(clean_graph, "CREATE (:Session {id: 'session-1'}), (:Session {id: 'session-1'})")
    assert await store.apply([put("a"), put("b", minute=1)]) == {}
    assert await store.count_session("session-1") == 2
    found = await store.related("a", depth=2, limit=10, readable=None)
    assert [one.record.key for one in found] == ["b"]


@pytest.mark.traces("REQ-010-008")
async def test_a_vector_follows_the_text_it_was_made_of(store: GraphColdStore) -> None:
    first, second = random_vectors(2)
    await store.apply([put("a", content="one", vector=first)])
    await store.apply([put("a", content="one", version=2, tags=("new",))])
    kept = (await store.vectors(["a"]))["a"]
    assert kept.version == 2
    np.testing.assert_array_equal(kept.vector, first)
    await store.apply([put("a", content="two", version=3)])
    assert await store.vectors(["a"]) == {}
    assert [one.key for one in await store.without_vectors("test-model", 5)] == ["a"]
    stale = StoredVector(version=2, model="test-model", vector=second)
    await store.attach_vectors({"a": stale, "unknown": stale})
    assert await store.vectors(["a"]) == {}
    await store.attach_vectors({"a": replace(stale, version=3, tokens=b"t")})
    attached = (await store.vectors(["a"]))["a"]
    np.testing.assert_array_equal(attached.vector, second)
    assert (attached.model, attached.tokens) == ("test-model", b"t")
    assert await store.embedding_models() == {"test-model": 1}
    assert [one.key for one in await store.without_vectors("other-model", 5)] == ["a"]


async def test_a_vector_that_does_not_fit_hinders_no_other(store: GraphColdStore) -> None:
    await store.apply([put("a"), put("b")])
    good = StoredVector(version=1, model="m", vector=random_vectors(1)[0])
    with pytest.raises(MemoryStorageError, match="dimension of 384"):
        await store.attach_vectors({"a": replace(good, vector=unit([1, 2])), "b": good})
    assert set(await store.vectors(["a", "b"])) == {"b"}
