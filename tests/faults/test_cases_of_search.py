"""Cases that broke others: what a search, a find and a summary give."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.interfaces import CXPPacket
from orchestrata_memory.models import (
    InjectionStrategy,
    MemoryClassification,
    MemoryEntry,
    MemoryScope,
    SummarizationStrategy,
)
from orchestrata_memory.tokens.registry import CounterRegistry
from tests.engine.conftest import As
from tests.faults.conftest import Lab

pytestmark = pytest.mark.servers

TIERS = ["hot", "cold"]


async def to_tier(engine: MemoryEngine, tier: str, *sessions: str) -> None:
    assert await engine.settle()
    if tier == "cold":
        for session in sessions:
            await engine.close_session(session)


def keys_of(entries: list[MemoryEntry]) -> set[str]:
    return {entry.key for entry in entries}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.traces("REQ-010-005", "REQ-010-017")
async def test_every_field_of_a_scope_changes_every_branch(
    engine: MemoryEngine, as_: As, tier: str
) -> None:
    """By keyword, by vector, by both, by find; no field is accepted and ignored."""
    places: dict[str, dict[str, str]] = {
        "mine": {"session_id": "s-1", "task_id": "t-1", "project_id": "p-1", "portfolio_id": "f-1"},
        "other": {
            "session_id": "s-2", "task_id": "t-2", "project_id": "p-2", "portfolio_id": "f-2",
        },
    }  # fmt: skip
    stored: dict[str, MemoryEntry] = {}
    for name, volk in (("mine", "ENG:ALPHA"), ("other", "OPS:ADMIN")):
        with as_(volk, **places[name]):
            stored[name] = await engine.store(
                "harbour pilots board at dawn",
                tags=["t"],
                classification=MemoryClassification.SHARED,
            )
    await to_tier(engine, tier, "s-1", "s-2")
    mine, other = stored["mine"], stored["other"]
    between = mine.created_at + (other.created_at - mine.created_at) / 2
    scopes: dict[str, tuple[Any, Any]] = {
        **{name: (places["mine"][name], places["other"][name]) for name in places["mine"]},
        "volk_id": ("ENG:ALPHA", "OPS:ADMIN"),
        "date_to": (between, other.created_at + timedelta(days=1)),
        "date_from": (mine.created_at - timedelta(days=1), between),
    }
    assert set(scopes) == {field.name for field in fields(MemoryScope)}
    expected = {name: ({mine.key}, {other.key}) for name in (*places["mine"], "volk_id")} | {
        "date_to": ({mine.key}, {mine.key, other.key}),
        "date_from": ({mine.key, other.key}, {other.key}),
    }
    for name, values in scopes.items():
        for value, wanted in zip(values, expected[name], strict=True):
            scope = MemoryScope(**{name: value})
            with as_("ENG:GAMMA", session_id="reader"):
                by_word = await engine.search("pilots", scope=scope, min_similarity=1.0)
                by_vector = await engine.search(
                    "at board dawn pilot's", scope=scope, min_similarity=0
                )
                assert keys_of(by_word) == wanted, (name, "keyword")
                assert keys_of(by_vector) == wanted, (name, "vector")
                assert keys_of(await engine.find(scope=scope)) == wanted, (name, "find")
                assert keys_of(await engine.find(tags=["t"], scope=scope)) == wanted, (name, "tags")


@pytest.mark.parametrize("tier", TIERS)
async def test_filters_are_not_applied_after_a_cut(lab: Lab, as_: As, tier: str) -> None:
    """Five own entries behind five hundred nearer ones of somebody else."""
    engine = await lab.start(worker={"outbox_limit": 5000})
    with as_("ENG:BETA", session_id="theirs", project_id="p"):
        for number in range(500):
            await engine.store(f"harbour pilots board at dawn {number}")
    with as_("ENG:ALPHA", session_id="mine", project_id="p"):
        own = [
            await engine.store(f"something about a harbour and much else besides, part {n}")
            for n in range(5)
        ]
    await to_tier(engine, tier, "theirs", "mine")
    with as_("ENG:ALPHA", session_id="reader"):
        for scope in (None, MemoryScope(project_id="p"), MemoryScope(session_id="mine")):
            for text in ("harbour", "harbour pilots board at dawn"):
                found = await engine.search(text, scope=scope, min_similarity=0, limit=5)
                assert keys_of(found) == keys_of(own), (scope, text)
            assert keys_of(await engine.find(scope=scope, limit=5)) == keys_of(own)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.traces("REQ-010-016")
async def test_hybrid_finds_what_the_vector_alone_does_not(
    engine: MemoryEngine, as_: As, tier: str
) -> None:
    with as_():
        wanted = await engine.store(
            "After the long meeting about the budget and the plans for the coming quarter somebody "
            "mentioned in passing that ticket OPS-4711 had been closed by the night shift."
        )
        for number in range(30):
            await engine.store(f"ticket number {number} of the night shift is closed")
        await to_tier(engine, tier, "s-1")
        found = await engine.search("OPS-4711", limit=3)
        assert found[0].key == wanted.key
        by_vector = await engine.search("which ticket is closed?", min_similarity=0.6, limit=3)
        assert wanted.key not in keys_of(by_vector)


PLAIN = [
    'what does "harbour" mean?',
    "what's the harbour?",
    "harbour~",
    "harbour~2 ?",
    "harbour AND (",
    "NOT harbour",
    "harbour OR",
    "a:b harbour",
    "harbour*",
    "+harbour -dawn",
    "[harbour TO dawn]",
    "harbour^4",
    "/harbour/",
    "\\",
    "harbour \\",
    "the of and",
    "to be or not to be",
    "?",
    "~",
    '"',
    '"""',
    "(",
    "}{",
    "&& || !",
    "🗼",
    "a" * 3000,
    "harbour " * 500,
]


@pytest.mark.parametrize("tier", TIERS)
async def test_a_plain_question_is_never_a_syntax_error(
    engine: MemoryEngine, as_: As, tier: str
) -> None:
    with as_():
        entry = await engine.store("the harbour opens at dawn, to be or not to be")
        await to_tier(engine, tier, "s-1")
        for text in PLAIN:
            found = await engine.search(text, min_similarity=0)
            assert keys_of(found) == {entry.key}, text[:40]
        assert keys_of(await engine.search("harbour~ ?", min_similarity=1.0)) == {entry.key}


@pytest.mark.parametrize("tier", TIERS)
async def test_what_others_keep_private_moves_no_score(
    engine: MemoryEngine, as_: As, tier: str
) -> None:
    with as_(project_id="p"):
        for number in range(12):
            await engine.store(f"harbour note {number} about {'dawn' if number % 3 else 'dusk'}")
        await to_tier(engine, tier, "s-1")
        with as_(session_id="reader", project_id="p"):

            async def scores() -> list[tuple[str, float]]:
                found = await engine.search("harbour dusk", min_similarity=0, limit=20)
                return [(entry.content, entry.relevance_score) for entry in found]

            before = await scores()
            assert len(before) == 12
            with as_("ENG:BETA", session_id="s-9", project_id="p"):
                for number in range(60):
                    await engine.store(f"dusk dusk harbour dusk {number}")
            after = await scores()
            await to_tier(engine, tier, "s-9")
            moved = await scores()
    for now in (after, moved):
        assert [content for content, _ in now] == [content for content, _ in before]
        for (_, was), (_, is_now) in zip(before, now, strict=True):
            assert is_now == pytest.approx(was, abs=1e-3)


@pytest.mark.parametrize("tier", TIERS)
async def test_ids_that_begin_with_anothers_see_nothing_of_it(lab: Lab, as_: As, tier: str) -> None:
    volks = {"conv": [], "conv1": [], "conv10": [], "conv1:": []}
    engine = await lab.start(governance={"volks": volks})
    stored: dict[str, str] = {}
    for name in volks:
        with as_(name, session_id=name, task_id=name, project_id=name):
            stored[name] = (await engine.store(f"of {name}: the harbour", tags=[name])).key
    await to_tier(engine, tier, *volks)
    for name in volks:
        with as_(name, session_id=name, task_id=name, project_id=name):
            own = {stored[name]}
            assert keys_of(await engine.find()) == own
            assert keys_of(await engine.find(tags=[name])) == own
            assert keys_of(await engine.search("harbour", min_similarity=0)) == own
            for field in ("session_id", "task_id", "volk_id", "project_id"):
                scope = MemoryScope(**{field: name})
                assert keys_of(await engine.find(scope=scope)) == own
                assert keys_of(await engine.search("harbour", scope=scope, min_similarity=0)) == own
            assert (await engine.summarize(name, max_tokens=64)).source_keys == (stored[name],)
            related = await engine.related(stored[name], depth=3)
            assert related == []
    with as_("conv1", session_id="conv1"):
        assert await engine.delete(stored["conv1"])
    with as_("conv10", session_id="conv10"):
        assert keys_of(await engine.find()) == {stored["conv10"]}


@pytest.mark.traces("REQ-010-022", "REQ-010-042")
async def test_recall_does_not_overflow_the_budget(engine: MemoryEngine, as_: As) -> None:
    counters = CounterRegistry()
    for provider in ("openai", "anthropic", "nobody-knows"):
        with as_(session_id=provider, provider=provider, project_id="p") as context:
            counter = counters.for_context(context)
            for number in range(40):
                await engine.store(
                    f"Note {number}: 東京 the harbour's pilots — naïve? — board at {number}:00! "
                    * 3
                )
            for budget in (16, 17, 64, 333, 2048):
                for strategy in SummarizationStrategy:
                    summary = await engine.summarize(provider, max_tokens=budget, strategy=strategy)
                    assert counter.count(summary.content) <= budget
                    assert summary.token_count <= budget
                for injection in InjectionStrategy:
                    packet = CXPPacket()
                    result = await engine.inject(
                        packet, "board the harbour", budget_tokens=budget, strategy=injection
                    )
                    injected = packet.metadata["memory_context"]
                    assert counter.count(injected["summary"]) <= budget
                    assert result.tokens_used + result.remaining == budget
