"""store, retrieve, update and delete on both tiers."""

from __future__ import annotations

import asyncio
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import (
    MemoryAccessDeniedError,
    MemoryContextError,
    MemoryKeyExistsError,
    MemoryNotFoundError,
    MemoryValidationError,
)
from orchestrata_memory.models import KeyState, MemoryClassification, MemoryEntry
from tests.engine.conftest import As, RecordingKernel

pytestmark = pytest.mark.servers

TEXT = 'Zwei "Quotes" {braces} a:b\nnew line — 東京タワー 🗼 مرحبا \\ $x'


async def cold_only(engine: MemoryEngine, entry: MemoryEntry) -> MemoryEntry:
    """Close the entry's session, so that only cold holds it."""
    assert await engine.settle()
    await engine.close_session(entry.session_id)
    state = (await engine.parts.hot.read([entry.key]))[entry.key]
    assert state.record is None
    return entry


@pytest.mark.traces("REQ-010-009", "REQ-010-006")
async def test_a_store_is_in_redis_when_it_returns(engine: MemoryEngine, as_: As) -> None:
    with as_(task_id="t-1", project_id="p-1", portfolio_id="f-1"):
        entry = await engine.store(
            TEXT,
            tags=["a", "b", "a"],
            metadata={"relevance": 0.5, "n": [1, None, {"x": "ü"}]},
            classification=MemoryClassification.SHARED,
        )
    state = (await engine.parts.hot.read([entry.key]))[entry.key]
    assert state.state is KeyState.LIVE
    assert state.record is not None
    assert state.record.to_entry() == entry
    assert entry.tags == ("a", "b")
    assert (entry.task_id, entry.project_id, entry.portfolio_id) == ("t-1", "p-1", "f-1")


@pytest.mark.traces("REQ-010-007")
async def test_generated_keys_are_version_4_and_distinct(engine: MemoryEngine, as_: As) -> None:
    with as_():
        entries = await asyncio.gather(*(engine.store(f"note {n}") for n in range(200)))
    keys = {entry.key for entry in entries}
    assert len(keys) == 200
    assert {UUID(key).version for key in keys} == {4}


@pytest.mark.traces("REQ-010-004", "REQ-010-011", "REQ-010-028")
async def test_round_trip_through_both_tiers_is_lossless(engine: MemoryEngine, as_: As) -> None:
    with as_(task_id="t", project_id="p"):
        entry = await engine.store(
            TEXT, key="k:1 %/ü", tags=["x y", "ü"], metadata={"a": {"b": [1.5, True]}}
        )
        assert await engine.retrieve(entry.key) == entry
        assert await engine.settle()
        embedded = await engine.retrieve(entry.key)
        assert embedded is not None
        assert embedded.embedding is not None
        assert np.linalg.norm(embedded.embedding) == pytest.approx(1, abs=1e-5)
        await cold_only(engine, entry)
        again = await engine.retrieve(entry.key)
        assert again == entry
        assert again is not None
        assert again.embedding == pytest.approx(embedded.embedding, abs=1e-6)
        assert await engine.retrieve("no such key") is None


@pytest.mark.traces("REQ-010-004")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=300
    ).filter(lambda text: bool(text.strip()))
)
async def test_any_text_survives_the_graph(engine: MemoryEngine, as_: As, content: str) -> None:
    with as_():
        entry = await engine.store(content)
        assert await engine.settle()
        stored = await engine.parts.cold.get([entry.key])
    assert stored[entry.key].content == content


async def test_the_same_explicit_store_again_returns_the_first(
    engine: MemoryEngine, as_: As
) -> None:
    with as_():
        first = await engine.store("one", key="k", tags=["t"])
        assert await engine.store("one", key="k", tags=["t"]) == first
        with pytest.raises(MemoryKeyExistsError, match="'k'"):
            await engine.store("another", key="k", tags=["t"])
        await cold_only(engine, first)
        assert await engine.store("one", key="k", tags=["t"]) == first
        with pytest.raises(MemoryKeyExistsError):
            await engine.store("another", key="k")
    with as_("ENG:BETA"), pytest.raises(MemoryKeyExistsError):
        await engine.store("one", key="k", tags=["t"])


async def test_of_many_stores_of_one_key_exactly_one_wins(engine: MemoryEngine, as_: As) -> None:
    async def attempt(n: int) -> str:
        with as_(session_id=f"s-{n}"):
            try:
                return (await engine.store(f"text {n}", key="contested")).content
            except MemoryKeyExistsError:
                return ""

    won = [text for text in await asyncio.gather(*map(attempt, range(12))) if text]
    assert len(won) == 1
    with as_():
        entry = await engine.retrieve("contested")
    assert entry is not None
    assert [entry.content] == won


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_update_changes_only_what_is_given(engine: MemoryEngine, as_: As, tier: str) -> None:
    with as_():
        entry = await engine.store("before", tags=["t"], metadata={"a": 1})
        if tier == "cold":
            await cold_only(engine, entry)
    with as_(session_id="another"):
        changed = await engine.update(entry.key, content="after")
    assert changed.content == "after"
    assert (changed.tags, changed.metadata) == (entry.tags, entry.metadata)
    assert (changed.session_id, changed.created_at) == (entry.session_id, entry.created_at)
    assert changed.version == entry.version + 1
    with as_():
        assert await engine.retrieve(entry.key) == changed
        assert await engine.settle()
        assert (await engine.parts.cold.get([entry.key]))[entry.key].content == "after"


async def test_an_update_with_nothing_given_changes_nothing(engine: MemoryEngine, as_: As) -> None:
    with as_():
        entry = await engine.store("before")
        with pytest.raises(MemoryValidationError, match="classification"):
            await engine.update(entry.key)
        assert await engine.retrieve(entry.key) == entry


async def test_concurrent_updates_are_all_applied(engine: MemoryEngine, as_: As) -> None:
    with as_():
        entry = await engine.store("counted")
        await asyncio.gather(
            *(engine.update(entry.key, metadata={"n": n}) for n in range(6)),
        )
        final = await engine.retrieve(entry.key)
    assert final is not None
    assert final.version == 7


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_what_was_deleted_stays_deleted(engine: MemoryEngine, as_: As, tier: str) -> None:
    with as_():
        entry = await engine.store("to be forgotten", key="gone")
        if tier == "cold":
            await cold_only(engine, entry)
        assert await engine.delete("gone") is True
        assert await engine.retrieve("gone") is None
        assert await engine.search("to be forgotten", min_similarity=0) == []
        assert await engine.settle()
        assert await engine.retrieve("gone") is None
        assert await engine.parts.cold.get(["gone"]) == {}
        assert await engine.delete("gone") is False
        again = await engine.store("a new life", key="gone")
    assert again.version > entry.version + 1


async def test_unknown_keys(engine: MemoryEngine, as_: As) -> None:
    with as_():
        assert await engine.delete("never") is False
        with pytest.raises(MemoryNotFoundError, match="never"):
            await engine.update("never", content="x")
        with pytest.raises(MemoryNotFoundError, match="never"):
            await engine.share("never", "ENG:BETA")


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": ""},
        {"content": " \n\t"},
        {"content": "a\0b"},
        {"content": "\ud800"},
        {"content": "x" * 70_000},
        {"content": "x", "key": ""},
        {"content": "x", "key": "a\nb"},
        {"content": "x", "key": "k" * 513},
        {"content": "x", "tags": ["ok", ""]},
        {"content": "x", "metadata": {"n": float("nan")}},
        {"content": "x", "metadata": {"b": b"bytes"}},
        {"content": "x", "metadata": {"s": {1, 2}}},
        {"content": "x", "metadata": {"relevance": 2}},
        {"content": "x", "metadata": {"occurred_at": "2026-01-01T00:00:00"}},
        {"content": "x", "metadata": {"big": "y" * 20_000}},
        {"content": "x", "classification": "secret"},
    ],
)
async def test_bad_input_is_refused_and_changes_nothing(
    engine: MemoryEngine, as_: As, arguments: dict
) -> None:
    with as_(), pytest.raises(MemoryValidationError):
        await engine.store(**arguments)
    with as_():
        assert await engine.find(limit=10) == []


async def test_no_caller_is_an_error(engine: MemoryEngine) -> None:
    with pytest.raises(MemoryContextError, match="memory_context"):
        await engine.store("x")


@pytest.mark.traces("REQ-010-049")
async def test_classification_needs_the_role(engine: MemoryEngine, as_: As) -> None:
    with as_("ENG:BETA"), pytest.raises(MemoryAccessDeniedError) as denied:
        await engine.store("x", classification=MemoryClassification.SHARED)
    assert denied.value.rule == "can_store_memory"
    with as_("ENG:ALPHA"):
        await engine.store("x", classification=MemoryClassification.SHARED)
        with pytest.raises(MemoryAccessDeniedError):
            await engine.store("x", classification=MemoryClassification.SYSTEM)
    with as_("OPS:ADMIN"):
        await engine.store("x", classification=MemoryClassification.SYSTEM)


@pytest.mark.traces("REQ-010-050")
async def test_reclassification_moves_both_ways_and_is_audited(
    engine: MemoryEngine, as_: As
) -> None:
    with as_("ENG:ALPHA"):
        entry = await engine.store("plan")
        await engine.update(entry.key, classification=MemoryClassification.SHARED)
    with as_("ENG:BETA"):
        assert await engine.retrieve(entry.key) is not None
    with as_("ENG:ALPHA"):
        await engine.update(entry.key, classification=MemoryClassification.PRIVATE)
        with pytest.raises(MemoryAccessDeniedError):
            await engine.update(entry.key, classification=MemoryClassification.SYSTEM)
        trail = await engine.audit_trail(entry.key)
    with as_("ENG:BETA"), pytest.raises(MemoryAccessDeniedError):
        await engine.retrieve(entry.key)
    details = [record.detail for record in trail if record.operation == "update"]
    assert "classification=private->shared" in details
    assert "classification=shared->private" in details
    assert any(record.outcome == "denied" for record in trail)


async def test_events_tell_keys_and_never_content(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel
) -> None:
    with as_():
        entry = await engine.store("canary-4711 flies")
        await engine.retrieve(entry.key)
        await engine.search("canary-4711", min_similarity=0)
    types = [event.type for event in kernel.events]
    assert types == [
        "memory.store.completed",
        "memory.retrieve.completed",
        "memory.search.completed",
    ]
    assert kernel.events[0].payload["key"] == entry.key
    assert "canary" not in repr(kernel.events)
