"""The search pipeline over both tiers (in dictionaries) with the real embedder's machinery."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from contextlib import suppress
from datetime import timedelta

import pytest

from orchestrata_memory.cold.base import Readable
from orchestrata_memory.errors import COLD_TIER, HOT_TIER, MemoryUnavailableError
from orchestrata_memory.hot.base import HotState
from orchestrata_memory.models import KeyState, MemoryClassification, MemoryScope
from tests.retrieval_search.doubles import START, record
from tests.retrieval_search.world import World

SHARED = MemoryClassification.SHARED


# --- both tiers ------------------------------------------------------------------------------
@pytest.mark.traces("REQ-010-016", "REQ-010-018")
async def test_both_tiers_are_ranked_together_with_falling_scores(world: World):
    world.hot.put(record("hot", "the lighthouse keeper wrote a letter"))
    await world.in_cold(
        record("cold", "a lighthouse keeper", session_id="old"),
        record("other", "boiled potatoes", session_id="old"),
    )
    outcome = await world.ask("lighthouse keeper", min_similarity=0.0)
    assert {hit.record.key for hit in outcome.hits} == {"hot", "cold", "other"}
    assert outcome.hits[-1].record.key == "other"
    assert {hit.record.key: hit.tier for hit in outcome.hits} == {
        "hot": "hot",
        "cold": "cold",
        "other": "cold",
    }
    scores = [hit.score for hit in outcome.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert outcome.tiers == ("hot", "cold")
    assert outcome.degraded is None


async def test_contents_come_back_whole(world: World):
    kept = record(
        "k", "Ünïcode — the storm", summary="short", metadata={"note": [1, {"deep": True}]}
    )
    world.hot.put(kept)
    (hit,) = (await world.ask("storm")).hits
    assert hit.record == kept


async def test_cold_is_not_asked_when_hot_holds_the_whole_scope(world: World):
    world.hot.put(record("k", "the storm breaks", session_id="mine"))
    await world.in_cold(record("old", "an older storm", session_id="old", project_id="q"))
    outcome = await world.ask("storm", scope=MemoryScope(session_id="mine"))
    assert outcome.tiers == ("hot",)
    assert world.cold.asked == []
    assert (await world.ask("storm", scope=MemoryScope(project_id="p"))).tiers == ("hot",)
    assert await world.keys("storm") == ["k", "old"] or await world.keys("storm") == ["old", "k"]


async def test_a_memory_in_both_tiers_comes_once_from_hot(world: World):
    kept = world.hot.put(record("k", "the storm breaks"))
    world.cold.put(kept, await world.vector(kept))
    await world.in_cold(record("old", "storm of the century"))
    outcome = await world.ask("storm")
    assert sorted(hit.record.key for hit in outcome.hits) == ["k", "old"]
    assert {hit.record.key: hit.tier for hit in outcome.hits}["k"] == "hot"


async def test_a_session_filter_means_the_session_of_origin_of_a_replica(world: World):
    old = record("old", "storm of the century", session_id="origin")
    await world.in_cold(old)
    world.hot.promote(old)
    assert await world.keys("storm", scope=MemoryScope(session_id="origin")) == ["old"]
    assert await world.keys("storm", scope=MemoryScope(session_id="s")) == []


@pytest.mark.parametrize("tier", ["hot", "cold"])
@pytest.mark.traces("REQ-010-005", "REQ-010-017", "REQ-010-030")
async def test_every_filter_holds_in_both_tiers(world: World, tier: str):
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
    entries = [record("wanted", "storm", **wanted, classification=SHARED)]
    entries += [
        record(name, "storm", **(wanted | {name: value}), classification=SHARED)
        for name, value in siblings.items()
    ]
    if tier == "hot":
        for entry in entries:
            world.hot.put(entry)
    else:
        await world.in_cold(*entries)
    at = START + timedelta(minutes=10)
    filters = {name: value for name, value in wanted.items() if name != "minute"}
    dates = {"date_from": at, "date_to": at}
    for scope in (MemoryScope(**filters, **dates), MemoryScope(**filters, date_to=at)):
        assert await world.keys("storm", scope=scope) == ["wanted"]
    for name, value in filters.items():
        found = await world.keys("storm", scope=MemoryScope(**{name: value}), limit=100)
        assert set(found) == {"wanted", *siblings} - {name}
    for name, value in dates.items():
        found = await world.keys("storm", scope=MemoryScope(**{name: value}), limit=100)
        assert ("minute" in found) == (name == "date_from")


# --- who may read ----------------------------------------------------------------------------
@pytest.mark.parametrize("prefilter", [True, False])
@pytest.mark.parametrize("tier", ["hot", "cold"])
@pytest.mark.traces("REQ-010-045", "REQ-010-049")
async def test_nobody_finds_what_it_may_not_read(world: World, tier: str, prefilter: bool):
    world.rules.prefilter = prefilter
    world.rules.grantors["D"] = ("C",)
    entries = [
        record("private", "storm"),
        record("shared", "storm", classification=SHARED),
        record("system", "storm", classification=MemoryClassification.SYSTEM),
        record("to c", "storm", shared_with=("C",)),
        record("of b", "storm", volk_id="B"),
    ]
    if tier == "hot":
        for entry in entries:
            world.hot.put(entry)
    else:
        await world.in_cold(*entries)
    public = {"shared", "system"}
    for volk, expected in {
        "A": {"private", "to c", *public},
        "B": {"of b", *public},
        "C": {"to c", *public},
        "D": {"to c", *public},
    }.items():
        assert set(await world.keys("storm", volk, min_similarity=0.0)) == expected


@pytest.mark.traces("REQ-010-048")
async def test_a_delegation_granted_by_another_process_counts_at_once(world: World):
    world.hot.put(record("to c", "storm", shared_with=("C",)))
    await world.in_cold(record("old to c", "storm", shared_with=("C",)))

    async def told() -> None:
        world.rules.grantors["D"] = ("C",)

    world.index._on_delegations = told
    await world.index.sync()
    world.rules.grantors.clear()
    assert await world.keys("storm", "D") == []
    world.hot.delegations_changed = True  # the change log says so; the rules do not know yet
    assert set(await world.keys("storm", "D")) == {"to c", "old to c"}


async def test_the_rules_have_the_last_word_over_the_prefilter(world: World):
    world.hot.put(record("a", "storm"))
    world.hot.put(record("b", "storm"))
    world.rules.denied = {"a"}
    assert await world.keys("storm") == ["b"]
    world.rules.prefilter = False
    world.rules.extra = {("B", "b")}
    assert await world.keys("storm", "B") == ["b"]


@pytest.mark.parametrize("prefilter", [True, False])
@pytest.mark.traces("REQ-010-018")
async def test_others_private_entries_do_not_move_a_score(world: World, prefilter: bool):
    world.rules.prefilter = prefilter
    await of_mine(world)
    before = await scores(world, "storm harbour")
    for number in range(30):
        world.hot.put(record(f"theirs{number}", "storm storm storm", volk_id="B"))
    await world.in_cold(*(record(f"cold{n}", "harbour", volk_id="B") for n in range(30)))
    assert await scores(world, "storm harbour") == before


@pytest.mark.parametrize("tier", ["hot", "cold"])
@pytest.mark.traces("REQ-010-018")
async def test_what_a_rule_forbids_moves_no_score(world: World, tier: str):
    forbidden = [
        record(
            f"no{n}",
            "storm storm over Anna's harbour",
            classification=SHARED,
            metadata={"speaker": "Anna"},
            position=2 * n + 1,
            volk_id="B",
        )
        for n in range(30)
    ]
    world.rules.denied = {one.key for one in forbidden}
    await of_mine(world)
    world.hot.put(record("beside", "north of it", classification=SHARED, position=2, volk_id="B"))
    before = await scores(world, "what storm did Anna see in the harbour")
    if tier == "hot":
        for one in forbidden:
            world.hot.put(one)
    else:
        await world.in_cold(*forbidden)
    assert await scores(world, "what storm did Anna see in the harbour") == before


@pytest.mark.traces("REQ-010-018", "REQ-010-035")
async def test_a_summary_of_what_may_not_be_read_moves_no_score(world: World):
    await of_mine(world)
    world.hot.put(record("secret", "storm over the harbour", volk_id="B"))
    before = await scores(world, "storm harbour")
    for number in range(9):
        world.hot.put(
            record(
                f"summary{number}",
                "storm storm harbour",
                classification=SHARED,
                volk_id="B",
                sources=("secret",),
                source_versions=(1,),
            )
        )
    await world.in_cold(
        record(
            "cold summary",
            "storm harbour",
            shared_with=("A",),
            volk_id="B",
            sources=("secret",),
            source_versions=(1,),
        )
    )
    assert await scores(world, "storm harbour") == before


async def test_rules_that_forbid_leave_speakers_and_statistics_to_what_they_permit(world: World):
    world.rules.denied = {"elsewhere"}
    world.hot.put(record("anna", "storm in the harbour", metadata={"speaker": "Anna"}))
    world.hot.put(record("other", "storm in the harbour too", metadata={"speaker": "Ben"}))
    hits = (await world.ask("what did Anna say of the storm")).hits
    assert hits[0].record.key == "anna"
    assert "speaker" in hits[0].explanation.match


async def of_mine(world: World) -> None:
    for number in range(5):
        world.hot.put(record(f"mine{number}", f"harbour {'storm' * (number % 2)} {number}"))
    await world.in_cold(record("old", "storm in the harbour"))


async def scores(world: World, query: str) -> dict[str, float]:
    hits = (await world.ask(query, min_similarity=0.0)).hits
    return {hit.record.key: hit.score for hit in hits}


@pytest.mark.parametrize("prefilter", [True, False])
async def test_words_of_an_unreadable_neighbour_find_nothing(world: World, prefilter: bool):
    world.rules.prefilter = prefilter
    world.hot.put(record("secret", "the lighthouse password", position=1))
    world.hot.put(record("open", "two miles north", position=2, classification=SHARED))
    outcome = await world.ask("lighthouse", "B", min_similarity=0.0)
    (hit,) = outcome.hits
    alone = hit.score
    world.hot.delete("secret", record("secret", ""))
    (hit,) = (await world.ask("lighthouse", "B", min_similarity=0.0)).hits
    assert hit.score == alone


async def test_a_stored_summary_needs_every_source(world: World):
    world.hot.put(record("open", "harbour at noon", classification=SHARED))
    world.hot.put(record("secret", "harbour at night"))
    await world.in_cold(record("old", "harbour long ago", classification=SHARED))
    world.hot.put(
        record(
            "narrow",
            "summary storm",
            classification=SHARED,
            sources=("open", "secret"),
            source_versions=(1, 1),
        )
    )
    world.hot.put(
        record(
            "wide",
            "summary storm too",
            classification=SHARED,
            sources=("open", "old"),
            source_versions=(1, 1),
        )
    )
    world.hot.put(
        record(
            "outdated",
            "summary storm of yesterday",
            classification=SHARED,
            sources=("old",),
            source_versions=(2,),
        )
    )
    world.hot.put(
        record(
            "second level",
            "storm summary of a summary",
            classification=SHARED,
            sources=("narrow",),
            source_versions=(1,),
        )
    )
    assert await world.keys("storm", "B") == ["wide"]
    assert set(await world.keys("storm", "A")) == {"narrow", "wide", "second level"}
    assert await world.keys("storm", "A", include_summaries=False) == []


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_a_stored_summary_stands_beside_nothing(world: World, tier: str):
    said = record("said", "storm over the harbour", position=1)
    summary = record(
        "summary", "all was quiet", position=2, sources=("said",), source_versions=(1,)
    )
    after = record("after", "so we stayed", position=3)
    if tier == "hot":
        for one in (said, summary, after):
            world.hot.put(one)
    else:
        await world.in_cold(said, summary, after)
    hits = (await world.ask("storm", min_similarity=0.0)).hits
    of_words = {hit.record.key: hit.explanation.match["keywords"][1] for hit in hits}
    assert of_words["summary"] == 0
    assert of_words["after"] > 0  # two places after the word


# --- limit and similarity --------------------------------------------------------------------
@pytest.mark.parametrize("tier", ["hot", "cold"])
@pytest.mark.traces("REQ-010-019")
async def test_the_limit_is_filled_however_much_is_filtered(world: World, tier: str):
    entries = [record(f"no{n:03}", "storm storm storm", minute=n) for n in range(450)]
    entries += [record(f"yes{n}", "a storm, among other things", minute=500) for n in range(7)]
    if tier == "hot":
        for entry in entries:
            world.hot.put(entry)
    else:
        await world.in_cold(*entries)
    world.rules.denied = {entry.key for entry in entries if entry.key.startswith("no")}
    assert len(await world.keys("storm", limit=7)) == 7
    assert len(await world.keys("storm", limit=5)) == 5
    assert len(await world.keys("storm", limit=300)) == 7


async def test_a_limit_beyond_the_first_look_is_filled(world: World):
    for number in range(600):
        world.hot.put(record(f"k{number}", f"word{number} harbour"))
    assert len(await world.keys("harbour", limit=500)) == 500
    assert len(await world.keys("something else", limit=1000, min_similarity=0.0)) == 600


async def test_without_a_least_similarity_even_what_has_no_vector_counts(world: World):
    await world.in_cold(*(record(f"k{n}", "harbour") for n in range(3)))
    bare = record("bare", "storm")
    world.cold.put(bare)
    world.hot.count_cold(bare)
    assert set(await world.keys("harbour", min_similarity=0.0)) == {"k0", "k1", "k2", "bare"}
    assert set(await world.keys("harbour", min_similarity=0.1)) == {"k0", "k1", "k2"}


async def test_least_similarity_applies_to_what_holds_no_term(world: World):
    world.hot.put(record("term", "storm and forty other words about nothing that matters here"))
    world.hot.put(record("far", "boiled potatoes with butter"))
    world.hot.put(record("same", "the quick brown fox"))
    assert await world.keys("storm", min_similarity=1.0) == ["term"]
    similarity = {
        hit.record.key: hit.explanation.similarity
        for hit in (await world.ask("storm", min_similarity=0.0)).hits
    }
    least = similarity["far"]
    assert least is not None
    assert "far" in await world.keys("storm", min_similarity=least)
    assert "far" not in await world.keys("storm", min_similarity=least + 0.001)
    assert await world.keys("the quick brown fox", min_similarity=1.0) == ["same"]


@pytest.mark.traces("REQ-010-016")
async def test_identifiers_and_scripts_without_blanks_are_found_by_parts(world: World):
    world.hot.put(record("code", "call parse_http_header before the body"))
    world.hot.put(record("japan", "昨日は東京都に行きました"))
    world.hot.put(record("noise", "nothing of that kind"))
    assert await world.keys("parseHttpHeader", min_similarity=1.0) == ["code"]
    assert await world.keys("東京", min_similarity=1.0) == ["japan"]


@pytest.mark.traces("REQ-010-008")
async def test_what_was_just_stored_is_found_by_meaning_at_once(world: World):
    world.hot.put(record("k", "boiled potatoes"))
    assert world.hot.kept == {}
    (hit,) = (await world.ask("boiled potatoes", min_similarity=0.99)).hits
    assert hit.explanation.similarity == pytest.approx(1.0, abs=1e-4)
    world.hot.put(record("k", "quick foxes"))
    (hit,) = (await world.ask("quick foxes", min_similarity=0.99)).hits
    assert hit.explanation.similarity == pytest.approx(1.0, abs=1e-4)


async def test_a_text_the_model_fails_on_is_found_by_its_words_and_tried_once(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    tried: list[str] = []
    embed = world.embedder.embed

    async def failing(texts: list[str]):
        tried.extend(texts)
        encodings = await embed(texts)
        return [
            None if "broken" in text else one for text, one in zip(texts, encodings, strict=True)
        ]

    monkeypatch.setattr(world.embedder, "embed", failing)
    world.hot.put(record("bad", "broken storm"))
    world.hot.put(record("good", "a storm"))
    for _ in range(3):
        assert set(await world.keys("storm")) == {"bad", "good"}
    assert sorted(tried) == ["a storm", "broken storm"]
    world.hot.put(record("bad", "mended storm"))
    assert await world.keys("mended storm", min_similarity=0.99) == ["bad", "good"]


# --- change and loss -------------------------------------------------------------------------
async def test_what_is_deleted_or_newer_in_hot_hides_what_cold_still_shows(world: World):
    gone, renewed = record("gone", "storm"), record("renewed", "storm")
    await world.in_cold(gone, renewed, record("old", "storm"))
    world.hot.delete("gone", gone)
    world.hot.put(record("renewed", "boiled potatoes", version=2))
    assert await world.keys("storm") == ["old"]
    assert "gone" in world.cold.excluded
    world.hot.down = True
    outcome = await world.ask("storm")
    assert [hit.record.key for hit in outcome.hits] == ["old"]
    assert outcome.tiers == ("cold",)
    assert outcome.degraded == HOT_TIER


async def test_with_the_graph_down_hot_answers_and_says_so(world: World):
    world.hot.put(record("hot", "storm"))
    await world.in_cold(record("cold", "storm"))
    world.cold.down = True
    outcome = await world.ask("storm")
    assert [hit.record.key for hit in outcome.hits] == ["hot"]
    assert outcome.degraded == COLD_TIER
    world.hot.down = True
    with pytest.raises(MemoryUnavailableError, match=f"{HOT_TIER} and {COLD_TIER}"):
        await world.ask("storm")


async def test_the_graph_down_does_not_matter_where_it_is_not_needed(world: World):
    world.hot.put(record("hot", "storm"))
    world.cold.down = True
    assert (await world.ask("storm")).degraded is None


@pytest.mark.parametrize("change", ["delete", "update", "move", "delete and store anew"])
async def test_a_result_that_changes_during_the_search_is_replaced(world: World, change: str):
    world.hot.put(record("best", "storm storm"))
    world.hot.put(record("next", "a storm and more"))
    await world.index.sync()
    await world.ask("storm")  # everything is embedded now: the next read is the last step
    done = asyncio.Event()

    async def happen() -> None:
        if done.is_set():
            return
        done.set()
        best = world.hot.states["best"].record
        assert best is not None
        if change == "update":
            world.hot.put(best.changed(content="boiled potatoes", version=2))
        elif change == "move":
            world.cold.put(world.hot.move_out("best"), await world.vector(best))
        else:
            world.hot.delete("best", best)
        if change == "delete and store anew":
            world.hot.put(record("best", "boiled potatoes", version=3))

    world.hot.before_read = happen
    hits = (await world.ask("storm", limit=1)).hits
    assert done.is_set()
    (hit,) = hits
    assert hit.record.key == ("best" if change == "move" else "next")
    assert "storm" in hit.record.content


async def test_a_cold_result_that_is_updated_during_the_search_is_replaced(world: World):
    await world.in_cold(record("best", "storm storm"), record("next", "a storm and more"))
    await world.ask("storm")
    happened = asyncio.Event()

    async def happen() -> None:
        if not happened.is_set():
            happened.set()
            new = record("best", "boiled potatoes", version=2)
            world.hot.states["best"] = HotState(state=KeyState.LIVE, version=2, record=new)
            world.hot.log.append("best")

    world.hot.before_read = happen
    assert await world.keys("storm", limit=1) == ["next"]
    assert happened.is_set()


async def test_one_tier_can_be_asked_alone(world: World):
    world.hot.put(record("hot", "storm"))
    await world.in_cold(record("cold", "storm"))
    assert await world.keys("storm", tiers="hot") == ["hot"]
    assert await world.keys("storm", tiers="cold") == ["cold"]


async def test_one_search_encodes_its_query_once(world: World, monkeypatch: pytest.MonkeyPatch):
    calls = []
    encode = world.embedder.embed_query

    async def counted(text: str):
        calls.append(text)
        return await encode(text)

    monkeypatch.setattr(world.embedder, "embed_query", counted)
    for number in range(400):
        world.hot.put(record(f"k{number}", "storm"))
    world.rules.denied = {f"k{number}" for number in range(395)}
    assert len(await world.keys("storm", limit=5)) == 5  # widened
    assert calls == ["storm"]


# --- overtaken by a move ------------------------------------------------------------------------
@pytest.mark.parametrize("asks_cold", [False, True])
async def test_what_moves_to_cold_while_it_is_looked_for_is_found(world: World, asks_cold: bool):
    """Between the decision which tiers to ask and the look-up, and the index hears of it."""
    kept = world.hot.put(record("k", "the storm breaks"))
    if asks_cold:
        await world.in_cold(record("old", "boiled potatoes"))
    vector = await world.vector(kept)
    await world.ask("storm")
    readable = world.rules.readable
    moves = 0

    async def moving(volk_id: str) -> Readable | None:
        nonlocal moves
        moves += 1
        if moves == 1:
            world.cold.put(world.hot.move_out("k"), vector)
            await world.index.sync()
        return await readable(volk_id)

    world.rules.readable = moving  # type: ignore[method-assign]
    outcome = await world.ask("storm")
    assert [hit.record.key for hit in outcome.hits] == ["k"]
    assert outcome.degraded is None


async def test_what_changes_and_moves_before_it_is_returned_is_found(world: World):
    kept = world.hot.put(record("k", "the storm breaks"))
    vector = await world.vector(kept)
    await world.ask("storm")

    async def moving() -> None:
        world.hot.before_read = None
        changed = world.hot.put(kept.changed(version=2, content="the storm is over"))
        world.cold.put(world.hot.move_out("k"), dataclasses.replace(vector, version=2))
        assert changed.version == 2

    world.hot.before_read = moving
    (hit,) = (await world.ask("storm")).hits
    assert hit.record.content == "the storm is over"


async def test_moves_without_end_do_not_keep_a_search(world: World):
    for number in range(12):
        world.hot.put(record(f"k{number}", "the storm breaks"))
    await world.ask("storm")
    readable = world.rules.readable
    moved: list[str] = []

    async def moving(volk_id: str) -> Readable | None:
        key = f"k{len(moved)}"
        gone = world.hot.move_out(key)
        moved.append(key)
        await world.in_cold(gone)
        await world.index.sync()
        return await readable(volk_id)

    world.rules.readable = moving  # type: ignore[method-assign]
    found = await world.keys("storm", limit=20)
    assert len(moved) < 12
    assert len(found) == 12


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("ticks", range(12))
async def test_a_search_cancelled_at_any_moment_leaves_nothing_behind(world: World, ticks: int):
    world.hot.put(record("k", "the storm breaks"))
    await world.in_cold(record("old", "storm of the century"))
    await world.ask("storm")
    before = asyncio.all_tasks()
    searching = asyncio.create_task(world.ask("what did Ann say of the storm?"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    searching.cancel()
    with suppress(asyncio.CancelledError):
        await searching
    del searching
    gc.collect()
    await world.index.sync()  # a run that others may share goes on
    assert asyncio.all_tasks() == before


async def test_a_pasted_text_finds_what_it_repeats(world: World):
    for number in range(1_300):
        world.hot.put(record(f"k{number}", f"word{number} harbour"))
    pasted = "storm " + "word77 storm " * 50 + " ".join(f"other{n}" for n in range(9_000))
    assert (await world.keys(pasted, limit=400))[0] == "k77"
