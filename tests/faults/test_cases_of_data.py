"""Cases that broke others: what is stored, deleted and embedded."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from orchestrata_memory.cold import transaction
from orchestrata_memory.cold.dialect.arcadedb_http import ArcadeHttp
from orchestrata_memory.config.settings import LimitSettings
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryConfigurationError, MemoryValidationError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.ingest import read_items
from orchestrata_memory.models import KeyState, MemoryScope
from tests.engine.conftest import As
from tests.faults.conftest import Lab, until
from tests.faults.doubles import MoodyModel, use_model

pytestmark = pytest.mark.servers


def rows(lab: Lab, text: str, **parameters: object) -> list[list[object]]:
    """What the graph says, asked past the engine."""
    with lab.graph.driver() as driver:
        records = driver.execute_query(
            text, parameters_=parameters, database_=lab.graph.database
        ).records
    return [list(record.values()) for record in records]


async def delete_everything_of_the_caller(engine: MemoryEngine, volk_id: str) -> int:
    deleted = 0
    while found := await engine.find(scope=MemoryScope(volk_id=volk_id), limit=10):
        deleted += sum([await engine.delete(entry.key) for entry in found])
    return deleted


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_deleting_all_of_one_volk_leaves_the_others(
    engine: MemoryEngine, lab: Lab, as_: As, tier: str
) -> None:
    for volk in ("ENG:ALPHA", "ENG:BETA"):
        with as_(volk, task_id="t", project_id="p"):
            for number in range(25):
                await engine.store(f"note {number}", tags=["t"])
    if tier == "cold":
        await engine.close_session("s-1")
    with as_("ENG:ALPHA"):
        assert await delete_everything_of_the_caller(engine, "ENG:ALPHA") == 25
    assert await engine.settle()
    with as_("ENG:ALPHA"):
        assert await engine.find() == []
    with as_("ENG:BETA"):
        assert len(await engine.find(tags=["t"], limit=100)) == 25
        assert len(await engine.search("note", min_similarity=0, limit=100)) == 25
    assert rows(lab, "MATCH (m:Memory)-[:CREATED_BY]->(v:Volk) RETURN v.id, count(m)") == [
        ["ENG:BETA", 25]
    ]


async def test_a_delete_takes_relationships_vectors_and_traces_with_it(
    engine: MemoryEngine, lab: Lab, as_: As
) -> None:
    with as_(task_id="t", project_id="p"):
        source = await engine.store("the secret harbour opens at dawn", tags=["x"])
        await engine.share(source.key, "ENG:BETA")
        summary = await engine.store_summary("t", max_tokens=64)
        assert summary is not None
        assert await engine.settle()
        links = "MATCH (m:Memory {key: $key})-[r]-() RETURN count(r)"
        assert rows(lab, links, key=source.key) == [[7]]
        assert source.key in await engine.parts.cold.vectors([source.key])
        assert await engine.delete(source.key)
        assert await engine.settle()
    assert rows(lab, "MATCH (m:Memory) RETURN m.key") == [], "its summary falls with it"
    assert rows(lab, "MATCH (m:MemoryVersion) RETURN count(m)") == [[2]]
    assert rows(lab, "MATCH (a)-[r]->(b) WHERE a:Memory OR b:Memory RETURN count(r)") == [[0]]
    assert await engine.parts.cold.vectors([source.key]) == {}
    await engine.parts.hot.sweep()
    with lab.redis.client() as raw:
        for name in raw.scan_iter(names.EVERY_PATTERN):
            kind = names.parse(name).kind
            assert kind not in {
                names.NameKind.ENTRY,
                names.NameKind.TAGS,
                names.NameKind.VECTOR,
                names.NameKind.EMBEDDING,
            }, name


async def test_another_dimension_on_the_same_graph_is_refused_with_the_way_out(
    lab: Lab, as_: As
) -> None:
    engine = await lab.start()
    with as_():
        entry = await engine.store("kept whatever the model")
        assert await engine.settle()
    await engine.stop()
    with pytest.raises(MemoryConfigurationError, match=r"384.*(?i:drop index)") as refused:
        await lab.start(embedding={"dimension": 256})
    assert "256" in str(refused.value)
    again = await lab.start()
    with as_():
        assert await again.retrieve(entry.key) == entry
        assert await again.search("whatever the model")
        assert set(await again.parts.cold.vectors([entry.key])) == {entry.key}


def drop_vector_index(lab: Lab, told: str) -> None:
    """Do as the error says."""
    found = re.search(r"(?i)drop index `?([^`\s:,]+(?:\[[^`]*\])?)`?", told)
    assert found, told
    statement = f"DROP INDEX `{found[1]}`"
    if lab.graph.dialect == "neo4j":
        rows(lab, statement)
        return
    assert lab.graph.http_url is not None
    http = ArcadeHttp(lab.graph.http_url, lab.graph.username, lab.graph.password, timeout=30)
    http.command(lab.graph.database, statement)


async def refusal(lab: Lab, dimension: int) -> str:
    with pytest.raises(MemoryConfigurationError) as refused:
        await lab.start(embedding={"dimension": dimension})
    return str(refused.value)


@pytest.mark.traces("REQ-010-038")
async def test_the_way_to_another_dimension_embeds_everything_anew(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    with as_():
        entries = [await engine.store(f"the harbour opens at {n}") for n in range(5)]
        keys = {entry.key for entry in entries}
        await engine.close_session("s-1")
        await engine.stop()
        drop_vector_index(lab, await refusal(lab, 256))
        try:
            other = await lab.start(
                embedding={"dimension": 256, "replace_model": True},
                worker={"sweep_interval_seconds": 0.3},
            )
            # Nothing is lost on the way, and words find all of it.
            assert {e.key for e in await other.search("harbour", min_similarity=1.0)} == keys

            async def renewed() -> bool:
                return await other.parts.cold.embedding_models() == {"hashing-256": 5}

            await until(renewed)
            vectors = await other.parts.cold.vectors(list(keys))
            assert {vector.vector.shape for vector in vectors.values()} == {(256,)}
            found = await other.search("harbor opened at 3", min_similarity=0)
            assert {e.key for e in found} == keys
            await other.stop()
        finally:
            drop_vector_index(lab, await refusal(lab, 384))


async def start_with_model(lab: Lab, name: str, **changes: Any) -> MemoryEngine:
    """A running engine with a model of that name; `changes` as for `Lab.container`."""
    container = lab.container(**changes)
    use_model(container, MoodyModel(name=name))
    return await lab.start(container)


@pytest.mark.traces("REQ-010-038")
async def test_another_model_of_the_same_dimension_embeds_everything_anew(
    lab: Lab, as_: As
) -> None:
    engine = await start_with_model(lab, "old")
    with as_():
        moved = [await engine.store(f"note number{n}") for n in range(3)]
        await engine.close_session("s-1")
        with as_(session_id="s-2"):
            hot = await engine.store("note number99")
        assert await engine.settle()
        await engine.stop()
        with pytest.raises(MemoryConfigurationError, match=r"by old.*replace_model"):
            await start_with_model(lab, "new")
        engine = await start_with_model(
            lab,
            "new",
            worker={"sweep_interval_seconds": 0.3},
            embedding={"replace_model": True},
        )
        keys = [entry.key for entry in [*moved, hot]]
        # Nothing is lost while that goes on, whatever its vector.
        assert {e.key for e in await engine.search("note", limit=20)} == set(keys)

        async def renewed() -> bool:
            return (await engine.parts.cold.embedding_models()) == {"new": 4}

        await until(renewed)
        vectors = await engine.parts.hot.vectors([hot.key])
        assert vectors[hot.key].model == "new"


IDS = [
    "a-b",
    "a:b",
    "a'b",
    'a"b',
    "a b",
    "*",
    "{x}",
    "index",
    "tags",
    "embed",
    "ü",
    "a%3Ab",
    "a\\b",
]


async def test_odd_ids_everywhere_stay_apart(engine: MemoryEngine, as_: As) -> None:
    for odd in IDS:
        with as_(session_id=odd, task_id=odd, project_id=odd, portfolio_id=odd):
            entry = await engine.store(f"content of {odd}", key=odd, tags=[odd])
            assert entry.key == odd
    for round_ in ("hot", "cold"):
        for odd in IDS:
            with as_(session_id=odd):
                found = await engine.retrieve(odd)
                assert found is not None
                assert (found.content, found.tags) == (f"content of {odd}", (odd,)), round_
                assert [e.key for e in await engine.find(tags=[odd])] == [odd]
                for field in ("session_id", "task_id", "project_id", "portfolio_id"):
                    scope = MemoryScope(**{field: odd})
                    assert [e.key for e in await engine.find(scope=scope)] == [odd]
                    hits = await engine.search("content", scope=scope, min_similarity=0)
                    assert [e.key for e in hits] == [odd]
        if round_ == "hot":
            assert await engine.settle()
            for odd in IDS:
                await engine.close_session(odd)
    for odd in IDS:
        with as_(session_id=odd):
            assert await engine.delete(odd)
            assert await engine.retrieve(odd) is None
    with as_():
        assert await engine.find() == []


async def test_naive_times_are_refused_and_aware_ones_kept_in_utc(
    engine: MemoryEngine, as_: As
) -> None:
    naive = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - that is the point
    tokyo = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=9)))
    with as_():
        for bad in (MemoryScope(date_from=naive), MemoryScope(date_to=naive)):
            with pytest.raises(MemoryValidationError, match="date_"):
                await engine.find(scope=bad)
            with pytest.raises(MemoryValidationError, match="date_"):
                await engine.search("x", scope=bad)
        with pytest.raises(MemoryValidationError, match="occurred_at"):
            await engine.store("x", metadata={"occurred_at": naive.isoformat()})
        with pytest.raises(MemoryValidationError, match="expires_at"):
            await engine.delegate("ENG:BETA", expires_at=naive)
        entry = await engine.store("x", metadata={"occurred_at": tokyo.isoformat()})
        assert datetime.fromisoformat(entry.metadata["occurred_at"]) == tokyo
        assert entry.created_at.utcoffset() == timedelta(0)
        there = entry.created_at.astimezone(tokyo.tzinfo)
        for closed in (False, True):
            if closed:
                await engine.close_session("s-1")
            scope = MemoryScope(date_from=there, date_to=there)
            assert [e.key for e in await engine.find(scope=scope)] == [entry.key]
            later = MemoryScope(date_from=there + timedelta(microseconds=1))
            assert await engine.find(scope=later) == []


async def test_the_model_never_sees_a_blank_and_sees_text_as_it_is(lab: Lab, as_: As) -> None:
    model = MoodyModel()
    container = lab.container()
    use_model(container, model)
    engine = await lab.start(container)
    text = "Zürich 東京 🗼 «naïve» \\u00e9 مرحبا"
    with as_():
        for blank in ("", " ", "\n\t", "\u00a0", "\u3000"):
            with pytest.raises(MemoryValidationError, match="content"):
                await engine.store(blank)
            with pytest.raises(MemoryValidationError, match="query"):
                await engine.search(blank)
        assert await engine.search("anything", min_similarity=0) == []
        await engine.store(text)
        assert await engine.settle()
        await engine.search("über 東京?", min_similarity=0)
        await engine.summarize("s-1", max_tokens=64)
        await engine.summarize("nothing there", max_tokens=64)
    assert text in model.seen
    assert "über 東京?" in model.seen
    assert all(seen.strip() for seen in model.seen)


async def test_entries_with_ill_vectors_do_not_break_search(
    engine: MemoryEngine, lab: Lab, as_: As
) -> None:
    with as_():
        good = [await engine.store(f"the harbour opens at {n}") for n in range(3)]
        ill = [await engine.store(f"the harbour closes at {n}") for n in range(3)]
        await engine.close_session("s-1")
        broken: list[object] = [None, [0.0] * 384, [1.0, 2.0]]
        for entry, vector in zip(ill, broken, strict=True):
            try:
                rows(
                    lab,
                    "MATCH (m:Memory {key: $key}) SET m.embedding = $vector",
                    key=entry.key,
                    vector=vector,
                )
            except Exception:  # noqa: BLE001 - this graph does not let anyone do it
                continue
        everything = {entry.key for entry in [*good, *ill]}
        found = await engine.search("harbour", min_similarity=0.99, limit=20)
        assert {entry.key for entry in found} == everything
        found = await engine.search("opens", min_similarity=0, limit=20)
        assert everything >= {entry.key for entry in found} >= {entry.key for entry in good}
        for scope in (MemoryScope(session_id="s-1"), MemoryScope(volk_id="ENG:ALPHA")):
            assert await engine.search("harbour", scope=scope, limit=20)
        summary = await engine.summarize("s-1", max_tokens=200)
        assert set(summary.source_keys) <= everything


async def test_a_memory_that_others_left_incomplete_hides_no_other(lab: Lab, as_: As) -> None:
    engine = await lab.start(worker={"sweep_interval_seconds": 0.3})
    with as_():
        good = await engine.store("the harbour opens at dawn")
        await engine.close_session("s-1")
        rows(
            lab,
            "CREATE (:Memory {key: 'half', content: 'the harbour, by hand', volk_id: 'ENG:ALPHA', "
            "session_id: 's-1', classification: 'private', version: 1, "
            "created_at: '2026-01-01T00:00:00.000000+00:00', "
            "updated_at: '2026-01-01T00:00:00.000000+00:00', terms: 'harbour', term_count: 1})",
        )
        rows(lab, "CREATE (:Memory {key: 'bare', terms: 'harbour', volk_id: 'ENG:ALPHA'})")
        assert good.key in {e.key for e in await engine.search("harbour", min_similarity=0)}
        assert good.key in {e.key for e in await engine.find()}
        young = await engine.store("the harbour, later")
        assert await engine.settle(30)
        await asyncio.sleep(1.0)  # upkeep meets them too
        assert set(await engine.parts.cold.vectors([young.key])) == {young.key}
        assert engine._wired.upkeep.problems() == {}


async def test_the_same_fact_twice_in_one_batch(engine: MemoryEngine, as_: As) -> None:
    await engine._wired.worker.stop()
    with as_():
        twice = [await engine.store("the same fact") for _ in range(2)]
        same = [await engine.store("the same key", key="k") for _ in range(2)]
        changed = await engine.update("k", content="changed in the same batch")
        engine._wired.worker.start()
        assert await engine.settle()
        assert same[0] == same[1]
        assert len({entry.key for entry in twice}) == 2
        cold = await engine.parts.cold.get([*(e.key for e in twice), "k"])
        assert len(cold) == 3
        assert cold["k"].content == changed.content
        assert len(await engine.search("the same fact", min_similarity=0, limit=10)) == 3
        summary = await engine.summarize("s-1", max_tokens=200)
        assert summary.content.count("the same fact") == 1


async def test_two_identical_stores_at_the_same_moment(engine: MemoryEngine, as_: As) -> None:
    with as_():
        for number in range(10):
            one, two = await asyncio.gather(
                engine.store("identical", key=f"k {number}"),
                engine.store("identical", key=f"k {number}"),
            )
            assert one == two
            assert one.version == 1
        assert await engine.settle()
        assert (await engine.parts.cold.counts())["all"] == 10
        assert len(await engine.find(limit=100)) == 10


async def test_replaying_the_queue_changes_nothing(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    await engine._wired.worker.stop()
    with as_(task_id="t", project_id="p"):
        kept = await engine.store("first text", key="kept", tags=["t"])
        await engine.update(kept.key, content="second text")
        await engine.share(kept.key, "ENG:BETA")
        await engine.store("to be deleted", key="gone")
        await engine.delete("gone")
        await engine.delegate("ENG:BETA")
    with lab.redis.client() as raw:
        records = raw.xrange(names.OUTBOX)
        assert len(records) >= 6
        engine._wired.worker.start()
        assert await engine.settle()
        state = "MATCH (n) WHERE NOT n:MemoryAudit OPTIONAL MATCH (n)-[r]->(m) RETURN "
        state += "labels(n), coalesce(n.key, n.id), n.version, n.content, type(r), "
        state += "coalesce(m.key, m.id) ORDER BY 2, 1, 5, 6"
        before = rows(lab, state)
        hot = await engine.parts.hot.read(["kept", "gone"])
        for order in (records, records[::-1], records + records):
            for _, fields in order:
                raw.xadd(names.OUTBOX, fields)
            assert await engine.settle()
            assert raw.xlen(names.DEAD) == 0
    assert rows(lab, state) == before
    assert {k: s.version for k, s in (await engine.parts.hot.read(["kept", "gone"])).items()} == {
        k: s.version for k, s in hot.items()
    }
    with as_():
        assert await engine.retrieve("gone") is None
        entry = await engine.retrieve("kept")
        assert entry is not None
        assert (entry.content, entry.version) == ("second text", 3)


async def test_an_unreadable_record_is_set_aside_and_the_rest_goes_on(
    engine: MemoryEngine, lab: Lab, as_: As
) -> None:
    with lab.redis.client() as raw:
        raw.xadd(names.OUTBOX, {"kind": "put", "key": "?", "version": "one", "content": "x"})
        raw.xadd(names.OUTBOX, {"nonsense": "1"})
    with as_():
        entry = await engine.store("goes on")
        assert await engine.settle()
    assert set(await engine.parts.cold.get([entry.key])) == {entry.key}
    health = await engine.get_health()
    assert health.parts["hot"].details["dead_letters"] == 2
    assert "dead letters" in health.parts["hot"].message


async def test_parts_of_a_large_document_do_not_share_an_id(
    engine: MemoryEngine, as_: As, tmp_path: Path
) -> None:
    limit = LimitSettings().content_bytes
    sentence = "The same sentence again and again, with nothing to tell the parts apart. "
    document = tmp_path / "large document.md"
    document.write_text("# Title\n\n" + sentence * (5 * limit // len(sentence)))
    items = list(read_items(document, limit_bytes=limit))
    assert len(items) >= 5
    assert len({item.key for item in items}) == len(items)
    with as_(session_id="ingest"):
        for item in items:
            await engine.store(item.content, key=item.key)
        assert await engine.settle()
        cold = await engine.parts.cold.get([str(item.key) for item in items])
        assert {key: r.content for key, r in cold.items()} == {i.key: i.content for i in items}


async def test_a_stored_summary_is_indexed_and_found(engine: MemoryEngine, as_: As) -> None:
    with as_():
        await engine.store("the lighthouse keeper feeds the gulls at noon")
        await engine.store("the harbour master counts the boats at night")
        summary = await engine.store_summary("s-1", max_tokens=100)
        assert summary is not None
        for closed in (False, True):
            if closed:
                await engine.close_session("s-1")
            found = await engine.search("gulls boats", min_similarity=0, limit=10)
            assert summary.key in {entry.key for entry in found}
            assert (
                set(await engine.parts.cold.vectors([summary.key])) == {summary.key} or not closed
            )


async def test_in_cold_means_with_links(
    engine: MemoryEngine, lab: Lab, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose links fail is in cold as little as if its nodes had failed."""
    original = transaction._run
    failing = True

    async def run(tx: object, name: str, **parameters: object) -> list[list[object]]:
        if failing and name == "link_projects":
            raise ConnectionResetError("cut before the links")
        return await original(tx, name, **parameters)

    monkeypatch.setattr(transaction, "_run", run)
    with as_(task_id="t", project_id="p"):
        entry = await engine.store("with links or not at all")
        await asyncio.sleep(0.7)
        assert rows(lab, "MATCH (m:Memory) RETURN count(m)") == [[0]]
        assert await engine.parts.hot.outbox_length() == 1
        state = (await engine.parts.hot.read([entry.key]))[entry.key]
        assert state.state is KeyState.LIVE
        failing = False
        assert await engine.settle()
    links = "MATCH (m:Memory)-[r]->() RETURN type(r) ORDER BY type(r)"
    assert [row[0] for row in rows(lab, links)] == [
        "BELONGS_TO",
        "CREATED_BY",
        "PART_OF",
        "RELATES_TO",
    ]


async def test_reading_what_is_being_deleted(engine: MemoryEngine, as_: As) -> None:
    """A graph may show half of a memory while it goes."""
    with as_(task_id="t"):
        for number in range(60):
            await engine.store(f"harbour note {number}", key=f"k {number}", tags=["t"])
        stays = await engine.store("harbour note that stays", tags=["t"])
        await engine.close_session("s-1")
        over = asyncio.Event()

        async def delete() -> None:
            for number in range(60):
                await engine.delete(f"k {number}")
            assert await engine.settle()
            over.set()

        async def read() -> None:
            while not over.is_set():
                found = await engine.find(tags=["t"], limit=100)
                assert stays.key in {entry.key for entry in found}
                assert all("harbour note" in entry.content for entry in found)
                hits = await engine.search("harbour", min_similarity=0, limit=100)
                assert stays.key in {entry.key for entry in hits}
                for related in await engine.related(stays.key, limit=100):
                    assert "harbour note" in related.entry.content

        await asyncio.gather(delete(), read())
        assert [entry.key for entry in await engine.find(limit=100)] == [stays.key]


@pytest.mark.traces("REQ-010-024")
async def test_an_accepted_ttl_is_applied_and_reading_never_shortens_it(lab: Lab, as_: As) -> None:
    engine = await lab.start(redis={"ttl_seconds": 300}, search={"promote": True})
    with as_(), lab.redis.client() as raw:
        entry = await engine.store("the harbour opens at dawn", tags=["t"])
        assert await engine.settle()
        home = names.entry("s-1", "ENG:ALPHA", entry.key)
        assert 290 < raw.ttl(home) <= 300
        for name in raw.scan_iter(names.PREFIX + "s-1:*"):
            assert 290 < raw.ttl(name) <= 301, name
        raw.expire(home, 5000)
        await engine.retrieve(entry.key)
        await engine.search("harbour", min_similarity=0)
        await engine.find()
        await engine.summarize("s-1", max_tokens=64)
        assert await engine.promote(entry.key) is False
        assert raw.ttl(home) > 4900
        await engine.close_session("s-1")
        with as_(session_id="s-2"):
            assert await engine.promote(entry.key)
            replica = names.entry("s-2", "ENG:ALPHA", entry.key)
            assert 290 < raw.ttl(replica) <= 300
            raw.expire(replica, 5000)
            await engine.promote(entry.key)
            await engine.search("harbour", min_similarity=0)
            await engine._wired.favours.join()
            assert raw.ttl(replica) > 4900


@pytest.mark.traces("REQ-010-038")
async def test_a_graph_that_comes_late_is_asked_for_its_model_all_the_same(
    lab: Lab, as_: As
) -> None:
    engine = await start_with_model(lab, "old")
    with as_():
        for number in range(3):
            await engine.store(f"note number{number}")
        assert await engine.settle()
        await engine.stop()
        proxy = await lab.proxy_graph()
        await proxy.refuse()
        engine = await start_with_model(
            lab, "new", graph=proxy, worker={"sweep_interval_seconds": 0.3}
        )
        await proxy.heal()

        async def told() -> bool:
            return "replace_model" in (await engine.get_health()).parts["upkeep"].message

        await until(told)
        entry = await engine.store("a note by the new one")
        assert await engine.settle()
        await asyncio.sleep(1)  # late embedding has had its turns
        assert set(await engine.parts.cold.get([entry.key])) == {entry.key}
        assert await engine.parts.cold.embedding_models() == {"old": 3}
