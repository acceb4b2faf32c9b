"""Finding over both tiers (in dictionaries)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrata_memory.cold.base import FindOrder
from orchestrata_memory.errors import COLD_TIER, MemoryUnavailableError
from orchestrata_memory.models import MemoryClassification, MemoryContext, MemoryScope
from tests.retrieval_search.doubles import START, record
from tests.retrieval_search.world import World

SHARED = MemoryClassification.SHARED


async def found(world: World, volk: str = "A", **options: Any) -> list[str]:
    context = MemoryContext(volk_id=volk, session_id="s")
    records = await world.find.find(context, **({"scope": MemoryScope()} | options))
    return [one.key for one in records]


async def fill(world: World, count: int, **fields: Any) -> None:
    """Even numbers in hot, odd ones in cold, one a minute."""
    for number in range(count):
        one = record(f"k{number:03}", f"content {number}", minute=number, **fields)
        if number % 2:
            await world.in_cold(one)
        else:
            world.hot.put(one)


@pytest.mark.traces("REQ-010-012", "REQ-010-013")
async def test_tags_all_and_any_over_both_tiers_newest_first(world: World):
    await world.in_cold(
        record("old x", "1", tags=("x",), minute=1),
        record("old xy", "2", tags=("y", "x"), minute=4),
    )
    world.hot.put(record("new x", "3", tags=("x",), minute=3))
    world.hot.put(record("new xy", "4", tags=("x", "y"), minute=2))
    world.hot.put(record("new z", "5", tags=("z", "xy"), minute=9))
    assert await found(world, tags=["x", "y"]) == ["old xy", "new xy"]
    assert await found(world, tags=["y", "x"], match_all=False) == [
        "old xy",
        "new x",
        "new xy",
        "old x",
    ]
    assert await found(world, tags=["x"], order=FindOrder.OLDEST, limit=2) == ["old x", "new xy"]
    assert await found(world, tags=["absent"]) == []


@pytest.mark.traces("REQ-010-013", "REQ-010-030")
async def test_session_task_and_inclusive_dates(world: World):
    await fill(world, 10, task_id="t")
    await world.in_cold(record("sibling", "x", session_id="s1", task_id="t1", minute=4))
    at = START + timedelta(minutes=4)
    assert await found(world, scope=MemoryScope(session_id="s1")) == ["sibling"]
    assert len(await found(world, scope=MemoryScope(task_id="t"), limit=100)) == 10
    span = MemoryScope(session_id="s", date_from=at, date_to=at + timedelta(minutes=2))
    assert await found(world, scope=span) == ["k006", "k005", "k004"]


async def test_contents_come_from_either_tier(world: World):
    await fill(world, 4)
    records = await world.find.find(
        MemoryContext(volk_id="A", session_id="s"), scope=MemoryScope(), limit=10
    )
    assert [one.content for one in records] == [f"content {number}" for number in (3, 2, 1, 0)]


async def test_the_limit_is_filled_however_many_are_denied(world: World):
    await fill(world, 300)
    world.rules.denied = {f"k{number:03}" for number in range(10, 300)}
    assert await found(world, limit=10) == [f"k{number:03}" for number in range(9, -1, -1)]


@pytest.mark.parametrize("prefilter", [True, False])
@pytest.mark.traces("REQ-010-045")
async def test_nobody_finds_what_it_may_not_read(world: World, prefilter: bool):
    world.rules.prefilter = prefilter
    await fill(world, 4)
    await world.in_cold(record("open", "x", classification=SHARED))
    world.hot.put(record("to b", "x", shared_with=("B",), minute=1))
    assert await found(world, "B") == ["to b", "open"]
    assert await found(world, "C") == ["open"]


async def test_what_hot_knows_better_hides_cold(world: World):
    gone, renewed = record("gone", "x", tags=("t",)), record("renewed", "x", tags=("t",))
    await world.in_cold(gone, renewed, record("old", "x", tags=("t",)))
    world.hot.delete("gone", gone)
    world.hot.put(record("renewed", "x", tags=("other",), version=2))
    assert await found(world, tags=["t"]) == ["old"]
    world.hot.down = True
    assert await found(world, tags=["t"]) == ["old"]


async def test_the_graph_down_matters_only_where_it_is_needed(world: World):
    world.hot.put(record("mine", "x", session_id="mine"))
    await world.in_cold(record("old", "x"))
    world.cold.down = True
    assert await found(world, scope=MemoryScope(session_id="mine")) == ["mine"]
    with pytest.raises(MemoryUnavailableError, match=COLD_TIER):
        await found(world)


@pytest.mark.parametrize("change", ["delete", "move", "untag"])
async def test_a_result_that_changes_meanwhile_is_replaced(world: World, change: str):
    world.hot.put(record("first", "x", tags=("t",), minute=2))
    world.hot.put(record("second", "x", tags=("t",), minute=1))
    await world.index.sync()
    happened: list[str] = []

    async def happen() -> None:
        if happened:
            return
        happened.append(change)
        first = world.hot.states["first"].record
        assert first is not None
        if change == "delete":
            world.hot.delete("first", first)
        elif change == "move":
            world.cold.put(world.hot.move_out("first"))
        else:
            world.hot.put(first.changed(tags=(), version=2))

    world.hot.before_read = happen
    expected = "first" if change == "move" else "second"
    assert await found(world, tags=["t"], limit=1) == [expected]
    assert happened


async def test_summaries_can_be_left_out(world: World):
    world.hot.put(record("source", "x"))
    world.hot.put(record("summary", "x", sources=("source",), source_versions=(1,), minute=1))
    assert await found(world) == ["summary", "source"]
    assert await found(world, include_summaries=False) == ["source"]
