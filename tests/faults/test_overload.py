"""Stores far above what the graph takes: bounded memory, an honest refusal, nothing lost.

The graph is slowed down, so that stores at full speed are more than ten times what it takes.
``OVERLOAD_SECONDS`` makes it a long run (10 by default, 60 for the full form).
"""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from dataclasses import dataclass, field

import psutil
import pytest
from redis import Redis

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryBackpressureError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.interfaces import HealthStatus
from tests.engine.conftest import As
from tests.faults.conftest import Lab

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "10"))
SAMPLES = 24
LIMIT = 1000
WRITERS = 16
CONTENT = "the harbour pilots board at dawn and leave at dusk " * 4
BATCH = 10
PER_ENTRY = 12 * 1024
"""Bytes of Python that the hot index may need for one memory of this length, generously."""

NATIVE = 40 << 20
"""Bytes the whole process may grow by beside that: libraries and allocators keep what they took."""

PER_MEMORY = 8 * len(CONTENT) + 8 * 384 * 3 + 4096
"""Bytes of Redis that one memory with its vectors and records may need, generously."""


@dataclass(frozen=True)
class Sample:
    """Bytes that Python, the whole process and Redis hold, and lengths, all at one moment."""

    python: int
    process: int
    redis: int
    outbox: int
    stored: int


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
    redis_before: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    async def run(self, lab: Lab, as_: As) -> None:
        """Store at full speed until the outbox is full, and for ``SECONDS`` after that."""
        with lab.redis.client() as raw:
            self.redis_before = int(raw.info("memory")["used_memory"])
            async with asyncio.TaskGroup() as tasks:
                for name in range(WRITERS):
                    tasks.create_task(self._write(name, as_))
                async with asyncio.timeout(60):
                    await self.full.wait()
                tracemalloc.start()  # not before: it would slow down the filling
                try:
                    await self._measure(raw)
                finally:
                    tracemalloc.stop()
                self.over = True

    async def _write(self, name: int, as_: As) -> None:
        with as_(session_id=f"s-{name}"):
            while not self.over:
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
        self.full.set()

    async def _measure(self, raw: Redis) -> None:
        process = psutil.Process()
        for _ in range(SAMPLES):
            await asyncio.sleep(SECONDS / SAMPLES)
            used = await asyncio.to_thread(raw.info, "memory")
            outbox = await self.engine.parts.hot.outbox_length()
            gc.collect()
            self.samples.append(
                Sample(
                    python=tracemalloc.get_traced_memory()[0],
                    process=process.memory_info().rss,
                    redis=int(used["used_memory"]),
                    outbox=outbox,
                    stored=len(self.stored),
                )
            )


async def in_cold(engine: MemoryEngine, keys: list[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(keys), 500):
        found |= set(await engine.parts.cold.get(keys[start : start + 500]))
    return found


def check_bounds(load: Load) -> None:
    """Bounded by the limit, not by the time it went on."""
    assert max(sample.outbox for sample in load.samples) <= LIMIT
    # A batch in the model takes its room for a moment: what stays is the least of several samples.
    first, last = load.samples[: SAMPLES // 4], load.samples[-SAMPLES // 4 :]
    python = min(one.python for one in last) - min(one.python for one in first)
    taken = last[-1].stored - first[0].stored + 2 * BATCH  # and those that get their vectors late
    told = f"Python holds {python >> 10} KB more for {taken} memories, while callers were refused"
    assert python < taken * PER_ENTRY, told
    process = min(one.process for one in last) - min(one.process for one in first)
    told = f"the process grew by {process >> 20} MB while callers were refused"
    assert process < taken * PER_ENTRY + NATIVE, told
    accepted = (len(load.stored) + LIMIT) * PER_MEMORY
    assert max(sample.redis for sample in load.samples) - load.redis_before < accepted


async def test_overload_is_bounded_and_refused_honestly(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_graph()
    engine = await lab.start(
        graph=proxy,
        worker={"outbox_limit": LIMIT, "batch_size": BATCH, "retry_max_seconds": 0.5},
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
