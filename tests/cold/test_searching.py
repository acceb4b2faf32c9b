"""Candidates, statistics, neighbours: every filter before the cut, exact cosines, no surprises."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from orchestrata_memory.cold.base import ColdDelete, ColdHit, Readable
from orchestrata_memory.cold.candidates import SCAN_LIMIT
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.models import MemoryClassification, MemoryScope
from tests.cold.builders import (
    ALPHA,
    BETA,
    DIMENSION,
    EVERYTHING,
    START,
    asked,
    opened,
    put,
    random_vectors,
    rows,
    unit,
)
from tests.servers.graph import GraphServer

pytestmark = pytest.mark.servers


def keys(hits: tuple[ColdHit, ...] | list[ColdHit]) -> set[str]:
    return {hit.record.key for hit in hits}


@pytest.mark.traces("REQ-010-016")
async def test_a_word_and_a_meaning_are_both_found(store: GraphColdStore) -> None:
    query, near, far = random_vectors(3)
    near = unit(query + 0.1 * near)
    await store.apply(
        [
            put("word", terms="err_4711 disk", vector=-query),
            put("meaning", terms="other", vector=near),
            put("bare", terms="err_4711"),
            put("neither", terms="nothing", vector=far),
        ]
    )
    found = await store.candidates(asked(terms=("err_4711",), vector=query, count=1))
    assert {"meaning"} < keys(found.hits) <= {"meaning", "word", "bare"}
    assert not found.keyword_exhausted
    assert not found.vector_exhausted
    found = await store.candidates(asked(terms=("err_4711",), vector=query, count=5))
    assert keys(found.hits) == {"word", "meaning", "bare", "neither"}
    assert found.keyword_exhausted
    assert found.vector_exhausted
    [bare] = [hit for hit in found.hits if hit.record.key == "bare"]
    assert (bare.cosine, bare.document.terms, bare.document.tokens) == (None, ("err_4711",), None)


@pytest.mark.traces("REQ-010-039")
async def test_cosines_agree_with_numpy(store: GraphColdStore) -> None:
    vectors = random_vectors(40, seed=3)
    query = vectors.pop()
    await store.apply(
        [put(f"k{n}", terms=f"t{n}", vector=one, position=n) for n, one in enumerate(vectors)]
    )
    by_keyword = await store.candidates(asked(terms=tuple(f"t{n}" for n in range(39)), count=50))
    assert all(hit.cosine is None for hit in by_keyword.hits)
    both = await store.candidates(asked(terms=("t0",), vector=query, count=50))
    beside = await store.neighbours([("session-1", ALPHA, n) for n in range(50)], query)
    for hits in (both.hits, beside):
        assert len(hits) == 39
        for hit in hits:
            expected = float(np.dot(vectors[int(hit.record.key[1:])], query))
            assert hit.cosine == pytest.approx(expected, abs=1e-5)
            assert (hit.document.tokens, hit.document.model) == (b"\x00\xff tokens", "test-model")


@pytest.mark.parametrize(
    "term",
    ["AND", "NOT", "dog(", "a:b", 'say"so', "back\\slash", "c++", "x*y?", "[a", "漢字", "🦊", "~1"],
)
async def test_no_term_means_anything_but_itself(store: GraphColdStore, term: str) -> None:
    await store.apply([put("it", terms=f"before {term} after"), put("other", terms="dog a b c")])
    found = await store.candidates(asked(terms=(term,)))
    assert keys(found.hits) == {"it"}
    statistics = await store.statistics([term, "nowhere"], EVERYTHING, None)
    assert statistics.frequencies == {term: 1, "nowhere": 0}


async def test_thousands_of_terms_are_no_error(store: GraphColdStore) -> None:
    await store.apply([put("a", terms="t7"), put("b", terms="t2999")])
    found = await store.candidates(asked(terms=tuple(f"t{n}" for n in range(3000))))
    assert keys(found.hits) == {"a", "b"}
    assert found.keyword_exhausted


SCOPES = {
    "session_id": "session-x",
    "task_id": "task-x",
    "volk_id": BETA,
    "project_id": "project-x",
    "portfolio_id": "portfolio-x",
}


@pytest.mark.traces("REQ-010-005", "REQ-010-017")
async def test_each_filter_alone_and_every_pair(store: GraphColdStore) -> None:
    names = list(SCOPES)
    vector = random_vectors(1)[0]
    writes = [
        put(
            f"m{mask}",
            vector=vector,
            **{name: SCOPES[name] for bit, name in enumerate(names) if mask & 1 << bit},
        )
        for mask in range(32)
    ]
    await store.apply(writes)
    for one in range(5):
        for two in range(one, 5):
            scope = MemoryScope(**{names[n]: SCOPES[names[n]] for n in (one, two)})
            wanted = {f"m{mask}" for mask in range(32) if mask & 1 << one and mask & 1 << two}
            for query in (
                asked(terms=("alpha",), scope=scope, count=40),
                asked(vector=vector, scope=scope, count=40),
            ):
                found = await store.candidates(query)
                assert keys(found.hits) == wanted
                assert found.keyword_exhausted
                assert found.vector_exhausted
            statistics = await store.statistics(["alpha"], scope, None)
            assert (statistics.documents, statistics.frequencies["alpha"]) == (len(wanted),) * 2
            assert {r.key for r in await store.find(scope, readable=None, limit=99)} == wanted


@pytest.mark.traces("REQ-010-030", "REQ-010-017")
async def test_both_ends_of_a_date_range_are_inside(store: GraphColdStore) -> None:
    await store.apply([put(f"m{n}", minute=n, vector=random_vectors(1)[0]) for n in range(6)])
    scope = MemoryScope(
        date_from=START + timedelta(minutes=1), date_to=START + timedelta(minutes=4)
    )
    wanted = {"m1", "m2", "m3", "m4"}
    assert keys((await store.candidates(asked(terms=("alpha",), scope=scope))).hits) == wanted
    assert {one.key for one in await store.find(scope, readable=None, limit=9)} == wanted
    assert (await store.statistics([], scope, None)).documents == 4
    beyond = MemoryScope(date_from=START + timedelta(minutes=4, microseconds=1))
    assert {one.key for one in await store.find(beyond, readable=None, limit=9)} == {"m5"}


async def test_only_what_the_caller_may_read_is_proposed(store: GraphColdStore) -> None:
    vector = random_vectors(1)[0]
    await store.apply(
        [
            put("own", volk_id=BETA, vector=vector),
            put("foreign", terms="alpha beta gamma", vector=vector),
            put("shared", classification=MemoryClassification.SHARED, vector=vector),
            put("system", classification=MemoryClassification.SYSTEM, vector=vector),
            put("for-me", shared_with=(BETA,), vector=vector),
            put("for-grantor", shared_with=("ENG:GAMMA",), vector=vector),
            put("of-grantor", volk_id="ENG:GAMMA", vector=vector),
        ]
    )
    readable = Readable(volk_id=BETA, grantors=("ENG:GAMMA",))
    wanted = {"own", "shared", "system", "for-me", "for-grantor"}
    for query in (
        asked(terms=("alpha",), readable=readable),
        asked(vector=vector, readable=readable),
    ):
        assert keys((await store.candidates(query)).hits) == wanted
    assert {r.key for r in await store.find(EVERYTHING, readable=readable, limit=9)} == wanted
    statistics = await store.statistics(["alpha", "beta"], EVERYTHING, readable)
    assert (statistics.documents, statistics.average_length) == (5, 1.0)
    assert statistics.frequencies == {"alpha": 5, "beta": 0}


class TestAmongManyOthers:
    """Five of a project among 2,000 others that match better."""

    @pytest.fixture
    async def crowd(self, store: GraphColdStore) -> GraphColdStore:
        query = random_vectors(1, seed=9)[0]
        noise = random_vectors(2000, seed=10)
        others = [
            put(f"other-{n}", terms="alpha alpha", vector=unit(query + 0.2 * one), project_id="big")
            for n, one in enumerate(noise)
        ]
        few = [
            put(
                f"few-{n}",
                terms="alpha " + "filler " * 30,
                vector=unit(one - 0.5 * query),
                project_id="small",
                volk_id=BETA,
            )
            for n, one in enumerate(random_vectors(5, seed=11))
        ]
        assert len(others) > SCAN_LIMIT
        for start in range(0, 2000, 400):
            assert await store.apply(others[start : start + 400]) == {}
        assert await store.apply(few) == {}
        return store

    async def test_the_filters_hold_before_the_cut(self, crowd: GraphColdStore) -> None:
        query = random_vectors(1, seed=9)[0]
        few = {f"few-{n}" for n in range(5)}
        small = MemoryScope(project_id="small")
        nobody = Readable(volk_id="ENG:NOBODY")
        for scope, readable, wanted in (
            (small, None, few),
            (small, Readable(volk_id=BETA), few),
            (EVERYTHING, Readable(volk_id=BETA), few),
            (MemoryScope(project_id="big"), Readable(volk_id=BETA), set()),
            (EVERYTHING, nobody, set()),
        ):
            for query_by in (
                asked(terms=("alpha",), scope=scope, readable=readable, count=5),
                asked(vector=query, scope=scope, readable=readable, count=5),
            ):
                found = await crowd.candidates(query_by)
                assert keys(found.hits) == wanted
                assert found.keyword_exhausted
                assert found.vector_exhausted

        excluded = frozenset(f"other-{n}" for n in range(1990))
        found = await crowd.candidates(asked(terms=("alpha",), count=10, exclude=excluded))
        assert len(found.hits) == 10
        assert not keys(found.hits) & excluded
        assert not found.keyword_exhausted
        found = await crowd.candidates(asked(vector=query, count=20, exclude=excluded))
        assert keys(found.hits) == few | {f"other-{n}" for n in range(1990, 2000)}
        assert found.vector_exhausted

    @pytest.mark.traces("REQ-010-040")
    async def test_the_index_finds_the_nearest(self, crowd: GraphColdStore) -> None:
        noise = random_vectors(2000, seed=10)
        center = random_vectors(1, seed=9)[0]
        stored = np.stack([unit(center + 0.2 * one) for one in noise])
        hit = 0
        for query in random_vectors(20, seed=12):
            order = np.argsort(-(stored @ query))[:10]
            found = await crowd.candidates(
                asked(vector=query, scope=MemoryScope(project_id="big"), count=50)
            )
            best = sorted(found.hits, key=lambda one: -(one.cosine or 0.0))[:10]
            hit += len({f"other-{n}" for n in order} & keys(best))
        assert hit / 200 >= 0.95

    async def test_an_index_that_is_being_loaded_is_not_waited_for(
        self, crowd: GraphColdStore, clean_graph: GraphServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        center = random_vectors(1, seed=9)[0]
        stored = np.stack([unit(center + 0.2 * one) for one in random_vectors(2000, seed=10)])
        query = random_vectors(1, seed=12)[0]
        nearest = {f"other-{n}" for n in np.argsort(-(stored @ query))[:20]}
        asked_of_index: list[str] = []
        read = GraphConnection.read

        async def watched(self: GraphConnection, text: str, parameters: Any) -> Any:
            asked_of_index.extend(["asked"] if "db.index.vector" in text else [])
            return await read(self, text, parameters)

        loaded = asyncio.Event()
        at_length = GraphConnection.at_length

        async def loading(self: GraphConnection, text: str, parameters: Any) -> Any:
            if "db.index.vector" in text:
                await loaded.wait()
            return await at_length(self, text, parameters)

        monkeypatch.setattr(GraphConnection, "read", watched)
        monkeypatch.setattr(GraphConnection, "at_length", loading)
        by_vector = asked(vector=query, scope=MemoryScope(project_id="big"), count=20)
        async with opened(clean_graph) as young:
            assert keys((await young.candidates(by_vector)).hits) == nearest
            assert not asked_of_index
            loaded.set()
            async with asyncio.timeout(60):
                while not asked_of_index:
                    found = await young.candidates(by_vector)
        assert len(keys(found.hits) & nearest) >= 18


async def test_excluded_keys_make_room_for_others(store: GraphColdStore) -> None:
    vector = random_vectors(1)[0]
    await store.apply([put(f"m{n}", vector=vector) for n in range(30)])
    exclude = frozenset(f"m{n}" for n in range(20))
    found = await store.candidates(
        asked(terms=("alpha",), vector=vector, count=10, exclude=exclude)
    )
    assert keys(found.hits) == {f"m{n}" for n in range(20, 30)}
    assert found.keyword_exhausted
    assert found.vector_exhausted


async def test_an_ill_vector_breaks_no_query(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    query = random_vectors(1)[0]
    await store.apply([put(f"m{n}", vector=one) for n, one in enumerate(random_vectors(4))])
    rows(
        clean_graph,
        "MATCH (m:Memory {key: 'm1'}) SET m.embedding = $zeros",
        zeros=[0.0] * DIMENSION,
    )
    if clean_graph.dialect == "neo4j":
        rows(clean_graph, "MATCH (m:Memory {key: 'm2'}) SET m.embedding = [1.0, 2.0]")
    for _ in range(2):
        found = await store.candidates(asked(terms=("alpha",), vector=query))
        cosines = {hit.record.key: hit.cosine for hit in found.hits}
        assert set(cosines) == {"m0", "m1", "m2", "m3"}
        assert cosines["m0"] == pytest.approx(1.0, abs=1e-5)
        assert not cosines["m1"]


async def test_a_query_vector_must_fit(store: GraphColdStore) -> None:
    for bad in (unit([1.0, 2.0]), np.zeros(DIMENSION, dtype=np.float32)):
        with pytest.raises(MemoryEmbeddingError):
            await store.candidates(asked(vector=bad))


async def test_statistics_follow_each_write_of_the_process(store: GraphColdStore) -> None:
    await store.apply([put("a", terms="x y"), put("b", terms="x")])
    first = await store.statistics(["x", "y"], EVERYTHING, None)
    assert (first.documents, first.average_length) == (2, 1.5)
    assert first.frequencies == {"x": 2, "y": 1}
    await store.apply([put("c", terms="x y z z z z")])
    second = await store.statistics(["x", "y"], EVERYTHING, None)
    assert (second.documents, second.average_length) == (3, 3.0)
    await store.apply([ColdDelete(key="c", version=2)])
    assert await store.statistics(["x", "y"], EVERYTHING, None) == first


async def test_neighbours_are_found_by_their_place(store: GraphColdStore) -> None:
    await store.apply(
        [
            put("a1", position=1),
            put("a2", position=2),
            put("b1", volk_id=BETA, position=1),
            put("c1", session_id="session", volk_id=f"1\u2028{ALPHA}", position=1),
        ]
    )
    found = await store.neighbours(
        [("session-1", ALPHA, 2), ("session-1", ALPHA, 3), ("session-1", BETA, 1)], None
    )
    assert keys(found) == {"a2", "b1"}
    assert await store.neighbours([], None) == []


async def test_speakers_come_in_their_stored_spelling(store: GraphColdStore) -> None:
    await store.apply(
        [
            put("a", metadata={"speaker": "Zoë Straße"}, project_id="p"),
            put("b", metadata={"speaker": "Bob"}, volk_id=BETA),
        ]
    )
    names = ["ZOË STRASSE", "bob", "nobody", ALPHA.lower()]
    assert await store.speakers(names, EVERYTHING, None) == {"Zoë Straße", "Bob"}
    assert await store.speakers(names, MemoryScope(project_id="p"), None) == {"Zoë Straße"}
    assert await store.speakers(names, EVERYTHING, Readable(volk_id=BETA)) == {"Bob"}


async def test_stored_summaries_are_neither_counted_nor_heard(store: GraphColdStore) -> None:
    await store.apply([put("said", metadata={"speaker": "Ann"})])
    summary = {"sources": ("said",), "source_versions": (1,), "metadata": {"speaker": "Bob"}}
    await store.apply([put("summary", terms="alpha beta", **summary)])
    counted = await store.statistics(["alpha", "beta"], EVERYTHING, None)
    assert (counted.documents, counted.average_length) == (1, 1.0)
    assert counted.frequencies == {"alpha": 1, "beta": 0}
    assert await store.speakers(["ann", "bob"], EVERYTHING, None) == {"Ann"}
