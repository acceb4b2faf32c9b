"""The hot index equals a naive recomputation, whatever happens to the store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrata_memory.cold.base import FindOrder, Readable
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import (
    KeyState,
    MemoryClassification,
    MemoryRecord,
    MemoryScope,
    census_names,
)
from orchestrata_memory.retrieval.hot_index import HotIndex
from tests.retrieval_search.doubles import (
    ANALYZER,
    START,
    HotDouble,
    chosen,
    has_tags,
    naive_statistics,
    record,
)

WORDS = ("ship", "sail", "harbour", "storm", "crew", "snake_case", "東京")
VOLKS = ("A", "B", "C")
KEYS = [f"k{number}" for number in range(12)]

records = st.builds(
    lambda key, words, volk, session, task, project, minute, shared, public, tags, position: record(
        key,
        " ".join(words),
        volk_id=volk,
        session_id=session,
        task_id=task,
        project_id=project,
        minute=minute,
        shared_with=tuple(sorted(shared)),
        classification=MemoryClassification.SHARED if public else MemoryClassification.PRIVATE,
        tags=tuple(sorted(tags)),
        position=position,
    ),
    key=st.sampled_from(KEYS),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    volk=st.sampled_from(VOLKS),
    session=st.sampled_from(["s", "s1", "s10"]),
    task=st.sampled_from([None, "t", "t1"]),
    project=st.sampled_from([None, "p", "p1"]),
    minute=st.integers(0, 5),
    shared=st.sets(st.sampled_from(VOLKS)),
    public=st.booleans(),
    tags=st.sets(st.sampled_from(["x", "y"])),
    position=st.integers(0, 6),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), records),
        st.tuples(st.just("delete"), st.sampled_from(KEYS)),
        st.tuples(st.just("move"), st.sampled_from(KEYS)),
        st.tuples(st.just("promote"), st.sampled_from(KEYS)),
        st.tuples(st.just("embed"), st.sampled_from(KEYS)),
        st.tuples(st.just("sync"), st.none()),
        st.tuples(st.just("trim"), st.none()),
    ),
    max_size=40,
)
scopes = st.builds(
    MemoryScope,
    session_id=st.sampled_from([None, None, "s1"]),
    task_id=st.sampled_from([None, None, "t"]),
    volk_id=st.sampled_from([None, None, "B"]),
    project_id=st.sampled_from([None, None, "p"]),
    date_from=st.sampled_from([None, START + timedelta(minutes=2)]),
    date_to=st.sampled_from([None, START + timedelta(minutes=3)]),
)
callers = st.sampled_from([None, *(Readable(volk_id=volk) for volk in VOLKS)]) | st.just(
    Readable(volk_id="D", grantors=("A",))
)


class History:
    """Plays steps into a double and remembers what moved to cold."""

    def __init__(self, embedder: Embedder) -> None:
        self.hot = HotDouble()
        self.index = HotIndex(self.hot.port, ANALYZER, embedder)
        self.model = embedder.model_name
        self.moved: dict[str, MemoryRecord] = {}

    async def play(self, kind: str, what: object) -> None:
        if kind == "put":
            assert isinstance(what, MemoryRecord)
            self.hot.put(what)
        elif kind == "sync":
            await self.index.sync()
        elif kind == "trim":
            self.hot.trim()
        else:
            self._on_key(kind, str(what))

    def _on_key(self, kind: str, key: str) -> None:
        state = self.hot.states.get(key)
        live = state is not None and state.state is KeyState.LIVE
        if kind == "promote" and state is not None and state.state is KeyState.COLD:
            self.hot.promote(self.moved[key])
        if state is None or not live or state.record is None:
            return
        if kind == "delete":
            self.hot.delete(key, state.record)
        elif kind == "move":
            self.moved[key] = self.hot.move_out(key)
        elif kind == "embed":
            vector = np.random.default_rng(state.version).normal(size=64).astype(np.float32)
            vector /= np.linalg.norm(vector)
            self.hot.embed(
                key, StoredVector(version=state.version, model=self.model, vector=vector)
            )

    def copies(self) -> list[MemoryRecord]:
        return [state.record for state in self.hot.states.values() if state.record is not None]


@pytest.mark.traces("REQ-010-012", "REQ-010-016", "REQ-010-017")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, scope=scopes, readable=callers)
async def test_the_index_equals_a_naive_recomputation(
    embedder: Embedder, steps: list[tuple[str, object]], scope: MemoryScope, readable: Readable
):
    history = History(embedder)
    for kind, what in steps:
        await history.play(kind, what)
    index = history.index
    await index.sync()
    copies = history.copies()
    pool = chosen(copies, scope, readable)
    by_key = {one.key: one for one in pool}

    assert sorted(index.keys()) == sorted(one.key for one in copies)
    assert index.count(census_names.covering(scope)) == len(
        chosen(
            copies,
            MemoryScope(
                session_id=scope.session_id,
                project_id=None if scope.session_id else scope.project_id,
            ),
            None,
        )
    )
    assert index.deleted_keys() == {
        key for key, state in history.hot.states.items() if state.state is KeyState.DELETED
    }
    terms = ANALYZER.query_terms(" ".join(WORDS))
    statistics = index.statistics(terms, scope, readable)
    naive = naive_statistics(terms, pool)
    assert statistics.documents == naive.documents
    assert statistics.frequencies == naive.frequencies
    assert statistics.average_length == pytest.approx(naive.average_length)

    query = np.random.default_rng(0).normal(size=64).astype(np.float32)
    query /= np.linalg.norm(query)
    candidates = await index.candidates(terms, query, scope, readable, 100)
    found = candidates.found
    assert {(one.key, one.version) for one in found.passages.values()} == {
        (one.key, one.version) for one in pool
    }
    assert found.records.keys() == found.passages.keys()
    assert candidates.complete
    for key, passage in found.passages.items():
        kept = history.hot.kept.get(key)
        assert list(passage.terms) == ANALYZER.terms(by_key[key].content)
        assert (key in found.cosines) == (kept is not None)
        if kept is not None:
            assert found.cosines[key] == pytest.approx(float(kept.vector @ query), abs=1e-5)

    few = await index.candidates(terms, query, scope, readable, 2)
    assert few.found.passages.keys() <= by_key.keys()
    with_vectors = sorted(
        (key for key in by_key if key in history.hot.kept),
        key=lambda key: -float(history.hot.kept[key].vector @ query),
    )
    assert set(with_vectors[:2]) <= few.found.passages.keys()
    holding = {one.key for one in pool if set(terms) & set(ANALYZER.terms(one.content))}
    if few.keyword_exhausted:
        assert holding <= few.found.passages.keys()

    listed = index.find(
        scope,
        tags=["x", "y"],
        match_all=False,
        readable=readable,
        order=FindOrder.NEWEST,
        include_summaries=True,
    )
    expected = sorted(
        (one for one in pool if has_tags(one, ["x", "y"], match_all=False)),
        key=lambda one: (-one.created_at.timestamp(), one.key),
    )
    assert [one.key for one in listed] == [one.key for one in expected]
    assert (
        set(index.missing_vectors(scope, readable, 100)) == by_key.keys() - history.hot.kept.keys()
    )


async def test_two_indexes_on_one_store_agree(embedder: Embedder):
    hot = HotDouble()
    first = HotIndex(hot.port, ANALYZER, embedder)
    second = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("k", "the storm breaks"))
    await asyncio.gather(first.sync(), second.sync())
    hot.put(record("k", "the harbour sleeps"))
    await second.sync()
    assert second.statistics(("harbour", "storm"), MemoryScope(), None).frequencies == {
        "harbour": 1,
        "storm": 0,
    }
    await first.sync()
    assert first.statistics(("harbour",), MemoryScope(), None).frequencies == {"harbour": 1}


async def test_a_caller_never_shares_a_run_that_began_before_its_change(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    await index.sync()
    hot.put(record("early", "ship"))
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        reading.set()
        await go_on.wait()

    hot.before_read = hold
    running = asyncio.create_task(index.sync())
    await reading.wait()  # the run has read the log and is on its way
    hot.put(record("late", "sail"))
    late = [asyncio.create_task(index.sync()) for _ in range(5)]
    await asyncio.sleep(0)
    hot.before_read = None
    go_on.set()
    await asyncio.gather(running, *late)
    assert set(index.keys()) == {"early", "late"}
    assert hot.reads == 2  # the five shared one run


async def test_a_cancelled_caller_leaves_the_run_to_the_others(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("k", "ship"))
    impatient, patient = (asyncio.create_task(index.sync()) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    assert index.keys() == ["k"]


async def test_an_expired_copy_does_not_count(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("k", "ship"), expires_at=datetime.now(UTC) + timedelta(milliseconds=80))
    await index.sync()
    assert index.count("all") == 1
    hot.forget("k", silently=True)  # expiry writes no change log
    await asyncio.sleep(0.15)
    await index.sync()
    assert index.count("all") == 0
    assert index.keys() == []


async def test_with_redis_down_the_index_still_knows_what_is_deleted(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    gone = hot.put(record("gone", "ship"))
    hot.put(record("kept", "ship"))
    hot.delete("gone", gone)
    await index.sync()
    hot.down = True
    with pytest.raises(MemoryUnavailableError):
        await index.sync()
    assert index.is_deleted("gone")
    assert index.deleted_keys() == {"gone"}
    assert index.keys() == ["kept"]
    assert index.known_version("gone") == 2
    hot.down = False
    hot.put(record("gone", "stored anew"))
    await index.sync()
    assert not index.is_deleted("gone")


async def test_a_failed_run_forgets_no_change(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    await index.sync()
    hot.put(record("k", "ship"))

    async def fail() -> None:
        hot.down = True
        hot._check()

    hot.before_read = fail
    with pytest.raises(MemoryUnavailableError):
        await index.sync()
    hot.before_read, hot.down = None, False
    await index.sync()
    assert index.keys() == ["k"]


async def test_an_expired_copy_is_looked_up_even_after_a_failed_run(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("k", "ship"), expires_at=datetime.now(UTC) + timedelta(milliseconds=80))
    await index.sync()
    hot.forget("k", silently=True)
    await asyncio.sleep(0.15)

    async def fail() -> None:
        hot.down = True
        hot._check()

    hot.before_read = fail
    with pytest.raises(MemoryUnavailableError):
        await index.sync()
    hot.before_read, hot.down = None, False
    await index.sync()
    assert index.keys() == []


async def test_a_log_that_is_trimmed_during_the_build_is_noticed(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("early", "ship"))
    happened = False

    async def trim() -> None:
        nonlocal happened
        if not happened:
            happened = True
            hot.put(record("late", "sail"))
            hot.trim()
            hot.put(record("later", "sail"))

    hot.before_read = trim
    await index.sync()
    assert set(index.keys()) == {"early", "late", "later"}


async def test_delegations_are_told_before_the_answer(embedder: Embedder):
    hot = HotDouble()
    told: list[str] = []

    async def tell() -> None:
        told.append("once")

    index = HotIndex(hot.port, ANALYZER, embedder, on_delegations=tell)
    await index.sync()
    await index.sync()
    assert told == ["once"]  # the first run cannot know what changed before it
    hot.delegations_changed = True
    await index.sync()
    assert told == ["once", "once"]


async def test_vectors_of_another_model_or_version_count_as_missing(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("k", "ship"))
    unit = np.eye(64, dtype=np.float32)[0]
    hot.embed("k", StoredVector(version=1, model="another", vector=unit))
    await index.sync()
    assert index.missing_vectors(MemoryScope(), None, 10) == ["k"]
    hot.embed("k", StoredVector(version=7, model=embedder.model_name, vector=unit))
    await index.sync()
    assert index.missing_vectors(MemoryScope(), None, 10) == ["k"]
    hot.embed("k", StoredVector(version=1, model=embedder.model_name, vector=unit))
    await index.sync()
    assert index.missing_vectors(MemoryScope(), None, 10) == []


async def test_context_comes_from_the_same_stream_and_only_readable(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    hot.put(record("a1", "ship", position=1))
    hot.put(record("a2", "sail", position=2, classification=MemoryClassification.SHARED))
    hot.put(record("b1", "crew", position=1, volk_id="B"))
    hot.put(record("sum", "storm", position=3, sources=("a1",), source_versions=(1,)))
    await index.sync()
    slots = [("s", "A", 1), ("s", "A", 2), ("s", "A", 3), ("s", "B", 1)]
    of_b = index.context(slots, None, Readable(volk_id="B"))
    assert of_b.passages.keys() == {"a2", "b1"}
    of_a = index.context(slots, None, Readable(volk_id="A"))
    assert of_a.passages.keys() == {"a1", "a2"}


async def test_what_stands_beside_a_match_is_a_candidate(embedder: Embedder):
    hot = HotDouble()
    index = HotIndex(hot.port, ANALYZER, embedder)
    for number in range(40):
        hot.put(record(f"n{number}", "nothing of interest", position=number + 1))
    hot.put(record("question", "where is the lighthouse", session_id="q", position=1))
    hot.put(record("answer", "two miles north of here", session_id="q", position=2))
    await index.sync()
    found = await index.candidates(("lighthous",), None, MemoryScope(), None, 5)
    assert found.found.passages.keys() == {"question", "answer"}
    assert found.keyword_exhausted
    assert not found.complete
