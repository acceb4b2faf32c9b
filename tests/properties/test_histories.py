"""Random histories on real servers, compared with a model.

What each Volk gets by retrieve, find, search, summary and traversal is what the model says, after
whatever the worker, its deaths, replays, expiry, migration and promotion did in between (rules 2,
3, 4, 7, 8 and 9 of the guarantees).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from tests.properties.graph_state import graph_state
from tests.properties.profiles import histories
from tests.properties.steps import HISTORY, VOLKS, Step
from tests.properties.world import World
from tests.servers.graph import GraphServer

pytestmark = [pytest.mark.servers, pytest.mark.timeout(0)]


async def live(world: World, history: list[Step]) -> None:
    """Go through a history; each step is checked as it goes."""
    for number, (name, *arguments) in enumerate(history):
        try:
            await world.step(name, *arguments)
            await world.check_kept()
            if number % 5 == 4:
                await world.look(VOLKS[number % len(VOLKS)], number)
        except BaseException as error:
            error.add_note(f"in step {number} of {history}")
            raise


async def end(world: World, graph: GraphServer) -> None:
    """Before and after everything is in cold, and after doing it all again."""
    await world.check_all()
    await world.end()
    await world.check_all()
    await world.check_related()
    assert world.left_in_hot() == set()
    settled: Any = graph_state(graph, world)
    assert settled.memories == {key: view.version for key, view in world.model.live.items()}
    await world.again()
    assert graph_state(graph, world) == settled
    await world.check_kept()
    await world.expire_all()
    await world.sweep()
    await world.check_all()
    await world.check_audit()
    assert world.left_in_hot() == set()
    assert graph_state(graph, world) == settled


@pytest.mark.traces("REQ-010-006", "REQ-010-034", "REQ-010-045")
@histories(14)
@given(history=HISTORY)
async def test_every_history_is_what_the_model_says(
    new_world: Callable[[], World], graph_server: GraphServer, history: list[Step]
) -> None:
    world = new_world()
    await live(world, history)
    await end(world, graph_server)
