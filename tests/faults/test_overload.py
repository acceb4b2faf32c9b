"""Stores far above what the graph takes: bounded memory, an honest refusal, nothing lost.

The graph is slowed down, so that stores at full speed are more than ten times what it takes.
``OVERLOAD_SECONDS`` makes it a long run (10 by default, 60 for the full form).
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field

import psutil
import pytest

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryBackpressureError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.interfaces import HealthStatus
from tests.engine.conftest import As
from tests.faults.conftest import Lab

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "10"))
LIMIT = 1000
WRITERS = 16
CONTENT = "the harbour pilots board at dawn and leave at dusk " * 20
PER_ENTRY = 12 * 1024
"""Bytes of the process that the hot index may need for one memory of this length, generously."""

PER_MEMORY = 8 * len(CONTENT) + 8 * 384 * 3 + 4096
"""Bytes of Redis that one memory with its vectors and records may need, generously."""


@dataclass(frozen=True)
class Sample:
    """Memory of the process and of Redis in bytes, and the outbox's length, at one moment."""

    process: int
    redis: int
    outbox: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a refusal told. The error itself would keep its frames, and all they hold, alive."""

    retry_after: float
    limit: int


@dataclass
class Load:
    """What stores at full speed came to."""

    engine: MemoryEngine
    stored: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    async def run(self, lab: Lab, as_: As) -> None:
        over = time.monotonic() + SECONDS
        await asyncio.gather(
            *(self._write(name, over, as_) for name in range(WRITERS)), self._measure(over, lab)
        )

    async def _write(self, name: int, over: float, as_: As) -> None:
        with as_(session_id=f"s-{name}"):
            while time.monotonic() < over:
                try:
                    entry = await self.engine.store(f"{CONTENT} {len(self.stored)}")
                except MemoryBackpressureError as error:
                    self._note(error)
                    await asyncio.sleep(0.05)
                else:
                    self.stored.append(entry.key)

    async def fill(self) -> None:
        """Store until the outbox is full."""
        for _ in range(LIMIT + 1):
            try:
                self.stored.append((await self.engine.store("until it is full")).key)
            except MemoryBackpressureError as error:
                self._note(error)
                return
        pytest.fail("the outbox has no limit")

    def _note(self, error: MemoryBackpressureError) -> None:
        self.refusals.append(Refusal(error.retry_after, error.limit))

    async def _measure(self, over: float, lab: Lab) -> None:
        process = psutil.Process()
        with lab.redis.client() as raw:
            while time.monotonic() < over:
                used = await asyncio.to_thread(raw.info, "memory")
                length = await self.engine.parts.hot.outbox_length()
                sample = Sample(process.memory_info().rss, int(used["used_memory"]), length)
                self.samples.append(sample)
                await asyncio.sleep(SECONDS / 40)


async def in_cold(engine: MemoryEngine, keys: list[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(keys), 500):
        found |= set(await engine.parts.cold.get(keys[start : start + 500]))
    return found


def check_bounds(load: Load) -> None:
    """Bounded by the limit, not by the time it went on."""
    assert max(sample.outbox for sample in load.samples) <= LIMIT
    full = [sample for sample in load.samples if sample.outbox >= LIMIT * 0.9]
    assert len(full) >= 5, "the outbox was not full for long"
    grown = full[-1].process - full[0].process
    told = f"the process grew by {grown >> 20} MB while callers were refused"
    assert grown < len(load.stored) * PER_ENTRY, told
    accepted = (len(load.stored) + LIMIT) * PER_MEMORY
    assert max(sample.redis for sample in load.samples) - load.samples[0].redis < accepted


async def test_overload_is_bounded_and_refused_honestly(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_graph()
    engine = await lab.start(
        graph=proxy,
        worker={"outbox_limit": LIMIT, "batch_size": 50, "retry_max_seconds": 0.5},
        embedding={"cache_embeddings": False},  # it fills up to 64 MiB, at the pace of write-behind
    )
    with as_(session_id="warm"):
        for number in range(100):
            await engine.store(f"{CONTENT} {number}")
        assert await engine.settle(60)
    proxy.latency = 0.1  # a batch has a dozen statements: some forty memories a second
    load = Load(engine)
    await load.run(lab, as_)

    # It was an overload, and callers were told so, with the limit and when to come again.
    taken = len(load.stored) - await engine.parts.hot.outbox_length()
    wanted = len(load.stored) + len(load.refusals)
    assert wanted >= 10 * taken
    assert all(one.retry_after > 0 and one.limit == LIMIT for one in load.refusals)
    check_bounds(load)
    health = await engine.get_health()
    assert health.parts["hot"].details["lag_records"] > LIMIT / 2

    # A full outbox takes deletes all the same, and says that stores are refused.
    await proxy.refuse()
    with as_(session_id="s-0"):
        await load.fill()
        health = await engine.get_health()
        assert health.parts["hot"].status is HealthStatus.UNHEALTHY
        assert "stores are refused" in health.parts["hot"].message
        gone = load.stored.pop()
        assert await engine.delete(gone)
        assert await engine.retrieve(gone) is None

    await proxy.heal()
    assert await engine.settle(300)
    assert await in_cold(engine, load.stored) == set(load.stored)
    assert await in_cold(engine, [gone]) == set()
    with lab.redis.client() as raw:
        assert raw.xlen(names.DEAD) == 0
    with as_(session_id="s-0"):
        assert await engine.store("room again")
