"""Servers whose disk is full.

Simulated by a limit on the size of the files a server may write (``RLIMIT_FSIZE``): its next
write of its log fails as it would on a full disk. Lifting it and starting the server again is
what an operator does who has made room.
"""

from __future__ import annotations

import asyncio
import sys

import psutil
import pytest

from orchestrata_memory.errors import MemoryEngineError, MemoryUnavailableError
from orchestrata_memory.interfaces import HealthStatus
from tests.engine.conftest import As
from tests.faults.conftest import Lab, until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes need Linux"),
]


def fill_the_disk_of(pid: int) -> None:
    """No file of the process and its children may grow any more."""
    process = psutil.Process(pid)
    for each in [process, *process.children(recursive=True)]:
        _, hard = each.rlimit(psutil.RLIMIT_FSIZE)
        each.rlimit(psutil.RLIMIT_FSIZE, (1024, hard))


async def test_a_full_disk_of_the_graph_loses_nothing(lab: Lab, as_: As) -> None:
    if not lab.graph.killable:
        pytest.skip("this graph server is not ours")
    engine = await lab.start(worker={"max_deliveries": 2})
    with as_():
        before = [await engine.store(f"before {n}") for n in range(5)]
        assert await engine.settle()
        fill_the_disk_of(lab.graph.pid)
        entries = [await engine.store(f"meanwhile {n} " * 200) for n in range(60)]

        async def said() -> bool:
            return (await engine.get_health()).status is not HealthStatus.HEALTHY

        await until(said)
        await asyncio.sleep(3)  # long enough for records to be given up, were they blamed
        assert await engine.retrieve(entries[7].key) == entries[7]
        await asyncio.to_thread(lab.graph.kill)
        await asyncio.to_thread(lab.graph.start)
        assert await engine.settle(120)
        keys = [entry.key for entry in [*before, *entries]]
        assert set(await engine.parts.cold.get(keys)) == set(keys)
    health = await engine.get_health()
    assert health.parts["hot"].details["dead_letters"] == 0


async def test_a_full_disk_of_redis_is_an_error_and_loses_nothing(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    acknowledged: list[str] = []
    with as_():
        acknowledged += [(await engine.store(f"before {number}")).key for number in range(5)]
        fill_the_disk_of(lab.redis.pid)
        refused: list[MemoryEngineError] = []
        for number in range(20):
            try:
                acknowledged.append((await engine.store(f"meanwhile {number}" * 100)).key)
            except MemoryEngineError as error:
                refused.append(error)
        assert refused, "the disk was never full"
        assert {type(error) for error in refused} == {MemoryUnavailableError}
        assert (await engine.get_health()).parts["hot"].status is HealthStatus.UNHEALTHY
        await asyncio.to_thread(lab.redis.kill)
        await asyncio.to_thread(lab.redis.start)
        assert (await engine.store("room again")).version == 1
        assert await engine.settle(100)
        assert set(await engine.parts.cold.get(acknowledged)) == set(acknowledged)
