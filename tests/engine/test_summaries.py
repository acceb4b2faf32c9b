"""Summaries, stored summaries and their lineage, and injection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from orchestrata_memory.container import MemoryContainer, build_engine
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.engine.operations import injecting
from orchestrata_memory.errors import (
    MemoryAccessDeniedError,
    MemoryBackpressureError,
    MemoryNotFoundError,
    MemoryUnavailableError,
    MemoryValidationError,
)
from orchestrata_memory.hot import keys as names
from orchestrata_memory.interfaces import CXPPacket
from orchestrata_memory.models import (
    InjectionStrategy,
    MemoryClassification,
    MemoryEntry,
    MemoryRecord,
    MemoryScope,
    SummarizationStrategy,
)
from orchestrata_memory.tokens.anthropic import AnthropicTokenCheck
from orchestrata_memory.tokens.registry import CounterRegistry
from tests.engine.conftest import As, RecordingKernel, engine_settings, until
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer
from tests.summaries.anthropic_server import fake_anthropic

pytestmark = pytest.mark.servers

NOTES = [
    "The outbox is a Redis stream with a consumer group.",
    "Kubernetes restarts the pod when the probe fails thrice.",
    "Invoices are numbered by year and a running number.",
    "The harbour crane lifts forty tonnes at most.",
    "Password hashes use argon2 with a per-user salt.",
    "The night train to Vienna leaves at ten past nine.",
]


async def fill(engine: MemoryEngine) -> None:
    """Store until the outbox is full, and delete until there is no room for that either."""
    stored: list[str] = []
    with suppress(MemoryBackpressureError):
        while len(stored) < 100:
            stored.append((await engine.store(f"note {len(stored)}")).key)
    for key in stored:
        await engine.delete(key)


async def store_notes(engine: MemoryEngine) -> list[str]:
    return [(await engine.store(note)).key for note in NOTES]


@pytest.mark.traces("REQ-010-020", "REQ-010-023")
async def test_sessions_and_tasks_are_summarized_with_their_sources(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel
) -> None:
    with as_(task_id="t-1"):
        keys = await store_notes(engine)
    with as_(session_id="s-2", task_id="t-1"):
        keys.append((await engine.store("A second session of the same task.")).key)
        of_task = await engine.summarize("t-1")
        of_session = await engine.summarize("s-1")
        assert (await engine.summarize("nothing here")).content == ""
    assert set(of_task.source_keys) == set(keys)
    assert set(of_session.source_keys) == set(keys[:-1])
    for note in NOTES:
        assert note in of_session.content
    assert of_session.source_count == len(of_session.source_keys)
    assert len(kernel.of_type("memory.summarize.completed")) == 3


@pytest.mark.traces("REQ-010-021")
async def test_the_focus_decides_what_is_told_first(engine: MemoryEngine, as_: As) -> None:
    with as_():
        keys = await store_notes(engine)
        assert await engine.settle()
    for number in (1, 3):
        with as_(focus=NOTES[number]):
            summary = await engine.summarize("s-1", max_tokens=20)
        assert summary.source_keys[0] == keys[number]


@pytest.mark.traces("REQ-010-022", "REQ-010-042")
@pytest.mark.parametrize("provider", ["openai", "anthropic", "unheard-of"])
@pytest.mark.parametrize("budget", [16, 40, 64])
async def test_budgets_hold_by_the_providers_counter(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel, provider: str, budget: int
) -> None:
    with as_(provider=provider) as context:
        await store_notes(engine)
        counter = CounterRegistry().for_context(context)
        summary = await engine.summarize("s-1", max_tokens=budget)
        assert counter.count(summary.content) == summary.token_count <= budget
        assert summary.counter == counter.name
        assert summary.omitted > 0
        with pytest.raises(MemoryValidationError, match="max_tokens"):
            await engine.summarize("s-1", max_tokens=15)
    assert kernel.of_type("memory.budget.warning")[0].payload["omitted"] == summary.omitted


@pytest.mark.traces("REQ-010-035")
async def test_lineage_of_two_levels_and_what_withdraws_a_summary(
    engine: MemoryEngine, as_: As
) -> None:
    with as_():
        keys = await store_notes(engine)
        first = await engine.store_summary("s-1")
        assert first is not None
        assert await engine.store_summary("s-1") == first
        second = await engine.store_summary("s-1", include_summaries=True)
        assert second is not None
        lineage = await engine.lineage(second.key)
        by_key = {source.entry.key: source for source in lineage.sources}
        assert first.key in by_key
        assert {s.entry.key for s in by_key[first.key].sources} == set(keys)
        assert await engine.settle()
        chain = await engine.parts.cold.summaries_of([first.key, keys[0]])
        assert [record.key for record in chain[first.key]] == [second.key]
        await engine.update(keys[0], content="Another thing entirely.")
        for key in (first.key, second.key):
            assert await engine.retrieve(key) is None
            with pytest.raises(MemoryNotFoundError):
                await engine.lineage(key)
        assert await engine.settle()
        assert await engine.parts.cold.get([first.key, second.key]) == {}


async def test_a_summary_in_cold_falls_with_a_source_in_cold(engine: MemoryEngine, as_: As) -> None:
    with as_():
        keys = await store_notes(engine)
        summary = await engine.store_summary("s-1")
        assert summary is not None
        await engine.close_session("s-1")
    with as_(session_id="s-2"):
        assert (await engine.retrieve(summary.key)) is not None
        await engine.delete(keys[2])
        assert await engine.retrieve(summary.key) is None
        found = await engine.search("harbour crane", min_similarity=0)
        assert summary.key not in {hit.key for hit in found}


async def test_reading_a_summary_needs_every_source(engine: MemoryEngine, as_: As) -> None:
    with as_():
        shared = await engine.store(NOTES[0], classification=MemoryClassification.SHARED)
        private = await engine.store(NOTES[1])
        summary = await engine.store_summary("s-1")
        assert summary is not None
        assert summary.classification is MemoryClassification.PRIVATE
        await engine.share(summary.key, "ENG:BETA")
    with as_("ENG:BETA"):
        with pytest.raises(MemoryAccessDeniedError, match="summary"):
            await engine.retrieve(summary.key)
        found = await engine.search("consumer group", min_similarity=0)
        assert [hit.key for hit in found] == [shared.key]
    with as_():
        await engine.delete(private.key)
        assert await engine.retrieve(summary.key) is None


@pytest.mark.traces("REQ-010-044", "REQ-010-042")
@pytest.mark.parametrize("strategy", list(InjectionStrategy))
async def test_injection_fills_the_packet_and_returns_what_remains(
    engine: MemoryEngine, as_: As, strategy: InjectionStrategy
) -> None:
    with as_(session_id="old", project_id="p-1"):
        keys = await store_notes(engine)
        await engine.close_session("old")
    with as_(session_id="foreign", project_id="p-2"):
        await engine.store("The crane of another project.")
    with as_(session_id="new", project_id="p-1"):
        own = await engine.store("Today the crane is inspected.")
        packet = CXPPacket(metadata={"kept": 1})
        result = await engine.inject(
            packet, "how much does the harbour crane lift", budget_tokens=64, strategy=strategy
        )
    context = packet.metadata["memory_context"]
    assert set(context) == {
        "injected_keys",
        "token_budget",
        "tokens_used",
        "strategy",
        "summary",
    }
    assert packet.metadata["kept"] == 1
    assert {own.key, keys[3]} <= set(context["injected_keys"])
    assert "another project" not in context["summary"]
    assert context["token_budget"] == 64 == result.tokens_used + result.remaining
    assert context["tokens_used"] == result.tokens_used <= 64
    assert context["strategy"] == strategy


async def test_injection_of_nothing(engine: MemoryEngine, as_: As) -> None:
    with as_():
        packet = CXPPacket()
        result = await engine.inject(packet, "anything at all")
    assert packet.metadata["memory_context"] == {
        "injected_keys": [],
        "token_budget": 4096,
        "tokens_used": 0,
        "strategy": "relevance",
        "summary": "",
    }
    assert result.remaining == 4096


@pytest.mark.parametrize("packet", [{}, None, "packet", {"metadata": {}}, CXPPacket(metadata=None)])  # type: ignore[arg-type]
async def test_what_is_no_packet_is_refused(engine: MemoryEngine, as_: As, packet: object) -> None:
    with as_(), pytest.raises(MemoryValidationError, match="packet"):
        await engine.inject(packet, "anything at all")  # type: ignore[arg-type]


async def test_bad_arguments(engine: MemoryEngine, as_: As) -> None:
    with as_():
        with pytest.raises(MemoryValidationError, match="strategy"):
            await engine.summarize("s", strategy="best")  # type: ignore[arg-type]
        with pytest.raises(MemoryValidationError, match="limit"):
            await engine.search("x", limit=0)
        with pytest.raises(MemoryValidationError, match="limit"):
            await engine.find(limit=10_001)
        with pytest.raises(MemoryValidationError, match="min_similarity"):
            await engine.search("x", min_similarity=1.5)
        with pytest.raises(MemoryValidationError, match="depth"):
            await engine.related("k", depth=6)
        with pytest.raises(MemoryValidationError, match="match"):
            await engine.find(match="some", scope=MemoryScope())  # type: ignore[arg-type]
        with pytest.raises(MemoryValidationError, match="strategy"):
            await engine.inject(CXPPacket(), "x", strategy="none")  # type: ignore[arg-type]
        assert (await engine.summarize("s", strategy=SummarizationStrategy.RECENCY)).content == ""


async def test_whoever_lost_a_source_gets_no_word_of_the_summary_by_changing_it(
    engine: MemoryEngine, as_: As
) -> None:
    with as_("ENG:ALPHA"):
        secret = await engine.store("the falcon lands at dawn")
        await engine.share(secret.key, "ENG:GAMMA")
    with as_("ENG:GAMMA"):
        await engine.delegate("ENG:BETA")
    with as_("ENG:BETA", session_id="s-1"):
        summary = await engine.store_summary("s-1")
        assert summary is not None
        assert "falcon" in summary.content
    with as_("ENG:GAMMA"):
        await engine.revoke("ENG:BETA")
    with as_("ENG:BETA"):
        for attempt in (
            engine.retrieve(summary.key),
            engine.update(summary.key, tags=["x"]),
            engine.share(summary.key, "ENG:DELTA"),
            engine.unshare(summary.key, "ENG:DELTA"),
        ):
            with pytest.raises(MemoryAccessDeniedError):
                await attempt


async def summary_of_the_past(engine: MemoryEngine, keys: Sequence[str]) -> MemoryEntry:
    """A stored summary of session s-1 that only cold can name by its sources."""
    summary = await engine.store_summary("s-1")
    assert summary is not None
    await engine.close_session("s-1")
    await engine.parts.hot._redis.command("DEL", *(names.summaries(key) for key in keys))
    return summary


async def away(*_: object) -> Any:
    raise MemoryUnavailableError("the graph", "it is away")


async def until_withdrawn(engine: MemoryEngine, key: str) -> None:
    async def withdrawn() -> bool:
        return not await engine.parts.cold.get([key])

    await until(withdrawn)


async def test_a_summary_falls_though_the_graph_was_away_when_its_source_changed(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_():
        keys = await store_notes(engine)
        summary = await summary_of_the_past(engine, keys)
        with monkeypatch.context() as patch:
            patch.setattr(engine.parts.cold, "summaries_of", away)
            await engine.delete(keys[0])
        await until_withdrawn(engine, summary.key)


async def test_stored_summaries_do_not_crowd_memories_out_of_an_injection(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injecting, "FOUND_AT_MOST", 1)
    with as_(session_id="old", project_id="p"):
        note = await engine.store("The crane lifts forty tonnes.")
        assert await engine.store_summary("old") is not None
        await engine.close_session("old")
    with as_(session_id="new", project_id="p"):
        result = await engine.inject(CXPPacket(), "The crane lifts forty tonnes.")
    assert result.summary.source_keys == (note.key,)


async def test_a_withdrawal_that_failed_is_made_up_for(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph must still name the summaries of a source when the worker tries again."""
    with as_():
        keys = await store_notes(engine)
        summary = await summary_of_the_past(engine, keys)
        tombstone = engine.parts.hot.tombstone
        refusals = iter([MemoryUnavailableError("Redis", "it is away")])

        async def failing_once(record: MemoryRecord, *args: Any, **kwargs: Any) -> None:
            if record.key == summary.key and (refusal := next(refusals, None)):
                raise refusal
            await tombstone(record, *args, **kwargs)

        monkeypatch.setattr(engine.parts.hot, "tombstone", failing_once)
        with monkeypatch.context() as patch:
            patch.setattr(engine.parts.cold, "summaries_of", away)
            await engine.delete(keys[0])
        await until_withdrawn(engine, summary.key)


async def test_a_full_outbox_does_not_hold_up_what_makes_room_in_it(
    clean_redis: RedisServer,
    clean_graph: GraphServer,
    tmp_path: Path,
    as_: As,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = engine_settings(clean_redis, clean_graph, tmp_path, worker={"outbox_limit": 20})
    async with build_engine(settings) as engine:
        with as_():
            source = await engine.store("The harbour crane lifts forty tonnes.")
            summary = await summary_of_the_past(engine, [source.key])
            with monkeypatch.context() as patch:
                patch.setattr(engine.parts.cold, "apply", away)
                patch.setattr(engine.parts.cold, "summaries_of", away)
                await engine.update(source.key, content="It lifts fifty.")
                with pytest.raises(MemoryBackpressureError):
                    await fill(engine)
            await until(engine.settle, 60)
            assert not await engine.parts.cold.get([summary.key])


@pytest.mark.traces("REQ-010-049")
async def test_a_summary_is_never_opened_wider_than_its_sources(
    engine: MemoryEngine, as_: As
) -> None:
    with as_():
        await store_notes(engine)
        summary = await engine.store_summary("s-1")
        assert summary is not None
        assert summary.classification is MemoryClassification.PRIVATE
        with pytest.raises(MemoryValidationError, match=r"classification.*private"):
            await engine.update(summary.key, classification=MemoryClassification.SHARED)
        assert await engine.retrieve(summary.key) == summary


@pytest.mark.traces("REQ-010-035")
async def test_a_stored_summary_keeps_the_limit_of_contents(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, as_: As
) -> None:
    settings = engine_settings(clean_redis, clean_graph, tmp_path, limits={"content_bytes": 100})
    async with build_engine(settings) as engine:
        with as_():
            await store_notes(engine)
            with pytest.raises(MemoryValidationError, match="a smaller budget"):
                await engine.store_summary("s-1", max_tokens=500)
            assert len(await engine.find()) == len(NOTES)
            kept = await engine.store_summary("s-1", max_tokens=16)
            assert kept is not None
            assert len(kept.content.encode()) <= 100


@pytest.mark.traces("REQ-010-022", "REQ-010-041")
@pytest.mark.parametrize("provider", ["anthropic", "Claude", "openai"])
async def test_anthropic_by_any_of_its_names_counts_a_finished_summary(
    clean_redis: RedisServer,
    clean_graph: GraphServer,
    tmp_path: Path,
    as_: As,
    provider: str,
) -> None:
    async with fake_anthropic(input_tokens=16) as fake:
        check = AnthropicTokenCheck("sk-test", deadline_seconds=5, base_url=fake.url)
        container = MemoryContainer(settings=engine_settings(clean_redis, clean_graph, tmp_path))
        container.token_check.override(providers.Object(check))
        async with container.engine() as engine:
            with as_(provider=provider, model="some-model"):
                await store_notes(engine)
                summary = await engine.summarize("s-1", max_tokens=64)
        asked = provider != "openai"
        assert (summary.counter == check.name) == asked == bool(fake.requests)


@pytest.mark.traces("REQ-010-043")
async def test_what_is_recent_is_a_setting_of_searches_and_summaries(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, as_: As
) -> None:
    week_ago = datetime.now(UTC) - timedelta(days=7)
    for half_life, first in ((1, "new"), (10_000, "old")):
        settings = engine_settings(
            clean_redis, clean_graph, tmp_path, search={"recency_half_life_days": half_life}
        )
        async with build_engine(settings) as engine:
            with as_(session_id=f"s-{half_life}", focus=None):
                for name, relevance, at in (("old", 0.55, week_ago), ("new", 0.5, None)):
                    metadata: dict[str, Any] = {"relevance": relevance}
                    if at is not None:
                        metadata["occurred_at"] = at.isoformat()
                    await engine.store(
                        "The cellar was dug by hand.",
                        key=f"{name}-{half_life}",
                        metadata=metadata,
                    )
                assert await engine.settle()  # then both have a vector, and fit alike
                summary = await engine.summarize(f"s-{half_life}", max_tokens=64)
        assert summary.source_keys[0] == f"{first}-{half_life}"
