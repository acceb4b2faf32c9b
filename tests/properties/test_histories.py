"""Random histories on real servers, compared with a model.

What each Volk gets by retrieve, find, search, summary and traversal is what the model says, after
whatever the worker, its deaths, replays, expiry, migration and promotion did in between (rules 2,
3, 4, 7, 8 and 9 of the guarantees).

A run goes through the same few histories each time. ``HISTORIES=500`` makes it as many,
``HISTORY_SEED`` begins elsewhere (one history: ``HISTORIES=1`` and the seed of the failure).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from orchestrata_memory.hot import keys
from tests.properties.graph_state import graph_state
from tests.properties.steps import VOLKS, Author, Step
from tests.properties.world import World
from tests.servers.graph import GraphServer

pytestmark = [pytest.mark.servers, pytest.mark.timeout(0)]

HISTORIES = int(os.environ.get("HISTORIES", "6"))
SEED = int(os.environ.get("HISTORY_SEED", "1"))
LENGTH = 60


async def live(world: World, history: list[Step]) -> None:
    """Go through a history; each step is checked as it goes."""
    for number, (name, *arguments) in enumerate(history):
        try:
            await world.step(name, *arguments)
            await world.check_kept()
            if number % 8 == 7:
                await world.look(VOLKS[number // 8 % len(VOLKS)], number)
        except BaseException as error:
            lines = "\n".join(map(repr, history[: number + 1]))
            error.add_note(f"after the last of these steps, keys {world.keys}:\n{lines}")
            raise


async def end(world: World, graph: GraphServer) -> None:
    """Everything in cold; then all of it done again; then every TTL run out."""
    await world.end()
    await world.check_all()
    await world.check_related()
    assert world.left_in_hot() <= {keys.summaries(key) for key in world.model.versions}
    settled = graph_state(graph, world)
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
@pytest.mark.parametrize("seed", range(SEED, SEED + HISTORIES))
async def test_every_history_is_what_the_model_says(
    new_world: Callable[[], World], graph_server: GraphServer, seed: int
) -> None:
    world = new_world()
    await live(world, Author(seed).history(LENGTH))
    await end(world, graph_server)
