"""Search and find over both tiers on real servers, under the real rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import combinations_with_replacement

import pytest

from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.embedding.factory import build_embedder
from orchestrata_memory.models import MemoryClassification, MemoryRecord, MemoryScope
from tests.retrieval_search.deployment import Deployment, deployed
from tests.retrieval_search.doubles import START, record
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers

SHARED = MemoryClassification.SHARED
TIERS = pytest.mark.parametrize("tier", ["hot", "cold"])


@pytest.fixture(scope="module")
async def embedder() -> AsyncIterator[Embedder]:
    """As wide as the vector index that the other tests leave on the graph."""
    service = build_embedder(EmbeddingSettings(backend="hashing", dimension=384))
    await service.open()
    yield service
    await service.close()


@pytest.fixture
async def here(
    clean_redis: RedisServer, clean_graph: GraphServer, embedder: Embedder
) -> AsyncIterator[Deployment]:
    async with deployed(clean_redis, clean_graph, embedder) as deployment:
        yield deployment


async def place(here: Deployment, tier: str, *records: MemoryRecord) -> None:
    """Store records, and for ``cold`` close their sessions."""
    await here.store(*records)
    if tier == "cold":
        await here.close_session(*{one.session_id for one in records})


@TIERS
@pytest.mark.traces("REQ-010-005", "REQ-010-017", "REQ-010-030")
async def test_each_filter_and_all_pairs_of_them(here: Deployment, tier: str):
    wanted = {
        "session_id": "conv1",
        "task_id": "t1",
        "volk_id": "A",
        "project_id": "p1",
        "portfolio_id": "f1",
        "minute": 10,
    }
    siblings = {
        "session_id": "conv10",
        "task_id": "t10",
        "volk_id": "A1",
        "project_id": "p10",
        "portfolio_id": "f10",
        "minute": 30,
    }
    entries = {"wanted": record("wanted", "storm", **wanted, classification=SHARED)}
    for name, value in siblings.items():
        entries[name] = record(name, "storm", **(wanted | {name: value}), classification=SHARED)
    await place(here, tier, *entries.values())
    filters = {name: value for name, value in wanted.items() if name != "minute"}
    at = START + timedelta(minutes=10)
    filters |= {"date_from": at, "date_to": at}
    names = sorted(filters)
    excluded = {"date_to": "minute", "date_from": ""}
    for first, second in combinations_with_replacement(names, 2):
        scope = MemoryScope(**{first: filters[first], second: filters[second]})
        expected = set(entries) - {excluded.get(name, name) for name in (first, second)}
        found = await here.keys("storm", scope=scope, limit=100)
        assert set(found) == expected, (first, second)
        assert set(await here.found(scope=scope, limit=100)) == expected, (first, second)


@TIERS
@pytest.mark.traces("REQ-010-045", "REQ-010-049")
async def test_nobody_finds_what_it_may_not_read(here: Deployment, tier: str):
    await place(
        here,
        tier,
        record("private", "storm"),
        record("shared", "storm", classification=SHARED),
        record("system", "storm", classification=MemoryClassification.SYSTEM),
        record("to c", "storm", shared_with=("C",)),
        record("of b", "storm", volk_id="B"),
    )
    public = {"shared", "system"}
    for volk, expected in {
        "A": {"private", "to c", *public},
        "B": {"of b", *public},
        "C": {"to c", *public},
        "D": public,
        "nobody": set(),
    }.items():
        assert set(await here.keys("storm", volk, min_similarity=0.0)) == expected
        assert set(await here.found(volk)) == expected


@TIERS
@pytest.mark.traces("REQ-010-015", "REQ-010-018")
async def test_others_private_entries_do_not_move_a_score(here: Deployment, tier: str):
    await place(
        here,
        tier,
        *(record(f"mine{n}", f"harbour {'storm ' * (n % 2)}{n}") for n in range(5)),
    )
    before = {hit.record.key: hit.score for hit in (await here.ask("storm harbour")).hits}
    assert len(before) == 5
    await place(here, tier, *(record(f"theirs{n}", "storm storm", volk_id="B") for n in range(30)))
    after = {hit.record.key: hit.score for hit in (await here.ask("storm harbour")).hits}
    assert after == pytest.approx(before)


@TIERS
@pytest.mark.traces("REQ-010-016")
async def test_identifiers_and_scripts_without_blanks(here: Deployment, tier: str):
    await place(
        here,
        tier,
        record("code", "call parse_http_header before the body"),
        record("japan", "昨日は東京都に行きました"),
        record("noise", 'title:storm AND (broken OR "syntax'),
    )
    assert await here.keys("parseHttpHeader", min_similarity=1.0) == ["code"]
    assert await here.keys("東京", min_similarity=1.0) == ["japan"]
    assert await here.keys('title:storm AND ("', min_similarity=1.0) == ["noise"]


@TIERS
@pytest.mark.traces("REQ-010-019")
async def test_the_limit_is_filled_under_heavy_filtering(here: Deployment, tier: str):
    crowd = [record(f"b{n:03}", "storm storm", volk_id="B") for n in range(300)]
    mine = [record(f"a{n}", "a storm, among other things") for n in range(7)]
    await place(here, tier, *crowd, *mine)
    assert len(await here.keys("storm", limit=7)) == 7
    assert len(await here.keys("storm", limit=50)) == 7
    assert len(await here.keys("storm", "B", limit=300)) == 300
    assert len(await here.keys("other", "B", limit=300, min_similarity=0.0)) == 300


@TIERS
@pytest.mark.traces("REQ-010-012", "REQ-010-013")
async def test_find_by_tags_all_and_any_newest_first(here: Deployment, tier: str):
    await place(
        here,
        tier,
        record("x", "1", tags=("x",), minute=3, task_id="t"),
        record("xy", "2", tags=("y", "x"), minute=1),
        record("similar", "3", tags=("x y", "xy"), minute=9, task_id="t1"),
    )
    assert await here.found(tags=["x", "y"]) == ["xy"]
    assert await here.found(tags=["x", "y"], match_all=False) == ["x", "xy"]
    assert await here.found(scope=MemoryScope(session_id="s"), limit=2) == ["similar", "x"]
    assert await here.found(scope=MemoryScope(task_id="t")) == ["x"]


@pytest.mark.traces("REQ-010-012", "REQ-010-018")
async def test_both_tiers_together(here: Deployment):
    await place(here, "cold", record("old", "storm of the century", session_id="old", tags=("t",)))
    await here.store(record("new", "the storm breaks", tags=("t",), minute=1))
    outcome = await here.ask("storm")
    assert {hit.record.key: hit.tier for hit in outcome.hits} == {"old": "cold", "new": "hot"}
    assert outcome.tiers == ("hot", "cold")
    assert await here.found(tags=["t"]) == ["new", "old"]
    mine = await here.ask("storm", scope=MemoryScope(session_id="s"))
    assert mine.tiers == ("hot",)  # hot holds the whole session


async def test_what_is_deleted_or_changed_never_comes_back_from_cold(here: Deployment):
    gone, renewed = record("gone", "storm"), record("renewed", "storm")
    await place(here, "cold", gone, renewed, record("kept", "storm"))
    assert set(await here.keys("storm")) == {"gone", "renewed", "kept"}
    await here.delete(gone)
    await here.update(renewed.changed(content="boiled potatoes", version=2))
    for _ in range(2):  # pending, and written behind
        assert await here.keys("storm") == ["kept"]
        assert set(await here.found()) == {"renewed", "kept"}
        assert await here.keys("boiled potatoes") == ["renewed"]
        await here.write_behind()


@pytest.mark.traces("REQ-010-008", "REQ-010-027")
async def test_found_by_meaning_before_and_after_the_worker_in_two_processes(
    here: Deployment, clean_redis: RedisServer, clean_graph: GraphServer, embedder: Embedder
):
    async with deployed(clean_redis, clean_graph, embedder) as there:
        await here.store(record("k", "boiled potatoes"))
        for process in (here, there):
            (hit,) = (await process.ask("boiled potatoes", min_similarity=0.99)).hits
            assert hit.explanation.similarity == pytest.approx(1.0, abs=1e-3)
        await there.update(record("k", "quick foxes", version=2))
        await here.write_behind()
        for process in (here, there):
            assert await process.keys("boiled potatoes", min_similarity=0.99) == []
            assert await process.keys("quick foxes", min_similarity=0.99) == ["k"]
        await there.close_session("s")
        for process in (here, there):
            outcome = await process.ask("quick foxes")
            assert [hit.tier for hit in outcome.hits] == ["cold"]


async def test_vectors_the_worker_attached_are_taken_over(here: Deployment):
    await here.store(record("k", "storm"))
    await here.index.sync()
    assert here.index.missing_vectors(MemoryScope(), None, 10) == ["k"]
    await here.write_behind()
    assert set(await here.hot.vectors(["k"])) == {"k"}
    await here.ask("storm")
    assert here.index.missing_vectors(MemoryScope(), None, 10) == []


async def test_redis_down_leaves_cold_and_what_this_process_knows(
    here: Deployment, clean_redis: RedisServer
):
    gone = record("gone", "storm")
    await place(here, "cold", gone, record("kept", "storm"))
    await here.delete(gone)
    assert await here.keys("storm") == ["kept"]
    clean_redis.kill()
    try:
        outcome = await here.ask("storm")
        assert [hit.record.key for hit in outcome.hits] == ["kept"]
        assert outcome.degraded is not None
        assert await here.found() == ["kept"]
    finally:
        clean_redis.start()
    assert await here.keys("storm") == ["kept"]


async def test_neighbours_in_cold_are_context(here: Deployment):
    await place(
        here,
        "cold",
        *(record(f"n{n}", "nothing of interest", session_id="n") for n in range(3)),
        record("question", "where is the lighthouse", session_id="q"),
        record("answer", "two miles north of here", session_id="q"),
    )
    hits = (await here.ask("lighthouse", min_similarity=0.0)).hits
    scores = {hit.record.key: hit.score for hit in hits}
    assert set(scores) == {"question", "answer", "n0", "n1", "n2"}
    assert hits[0].record.key == "question"
