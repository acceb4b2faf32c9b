"""Two engines, one session closed by both, stores that go on meanwhile, and clocks that jump."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from dependency_injector import providers

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryConflictError, MemoryEngineError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.models import MemoryEntry, MemoryScope
from tests.engine.conftest import As, RecordingKernel
from tests.faults.conftest import Lab, until

pytestmark = pytest.mark.servers


class MovedClock:
    """Now, and whatever the test adds to it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


async def nothing_hot(engine: MemoryEngine, session_id: str) -> bool:
    return await engine.parts.hot.session_keys(session_id) == {}


@pytest.mark.traces("REQ-010-032")
async def test_two_engines_close_one_session_while_both_store(lab: Lab, as_: As) -> None:
    kernels = [RecordingKernel(), RecordingKernel()]
    engines = [await lab.start(kernel=kernel) for kernel in kernels]
    entries: list[MemoryEntry] = []
    closed = asyncio.Event()

    async def writer(engine: MemoryEngine) -> None:
        with as_(session_id="both"):
            while not closed.is_set():
                entry = await engine.store(f"note {len(entries)}", tags=["t"])
                entries.append(entry)
                if len(entries) % 5 == 0:
                    await engine.update(entry.key, content=f"changed {len(entries)}")
                await asyncio.sleep(0)

    async def close() -> None:
        await asyncio.sleep(0.5)
        await asyncio.gather(*(engine.close_session("both") for engine in engines))
        closed.set()

    await asyncio.gather(*map(writer, engines), close())
    for engine in engines:
        assert await engine.settle(100)
    # What came after the mark moves on by itself.
    await until(lambda: nothing_hot(engines[0], "both"))
    keys = [entry.key for entry in entries]
    cold = await engines[0].parts.cold.get(keys)
    assert set(cold) == set(keys)
    assert (await engines[1].parts.cold.counts())["all"] == len(keys)
    moved = [
        event.payload["migrated"]
        for kernel in kernels
        for event in kernel.of_type("memory.migrate.completed")
    ]
    assert len(moved) >= 2, "each engine says that it closed; a retry may say more"
    assert sum(moved) <= len(keys), "no entry is counted by both"
    with as_(session_id="both"):
        assert len(await engines[1].find(tags=["t"], limit=10_000)) == len(keys)


async def test_two_engines_see_each_others_changes_at_once(lab: Lab, as_: As) -> None:
    one, two = await lab.start(), await lab.start()
    with as_():
        entry = await one.store("the harbour opens at dawn", key="shared by both")
        assert await two.retrieve(entry.key) == entry
        assert [e.key for e in await two.search("harbour", min_similarity=0)] == [entry.key]
        changed = await two.update(entry.key, content="the harbour opens at noon")
        assert [e.content for e in await one.search("harbour", min_similarity=0)] == [
            changed.content
        ]
        results = await asyncio.gather(
            *(
                engine.update(entry.key, metadata={"n": n})
                for n in range(5)
                for engine in (one, two)
            ),
            return_exceptions=True,
        )
        done = [r for r in results if isinstance(r, MemoryEntry)]
        assert all(isinstance(r, MemoryEntry | MemoryConflictError) for r in results)
        now = await one.retrieve(entry.key)
        assert now is not None
        assert now.version == changed.version + len(done)
        deleted = await asyncio.gather(one.delete(entry.key), two.delete(entry.key))
        assert sorted(deleted) == [False, True]
        assert await one.search("harbour", min_similarity=0) == []
        assert await two.find() == []


async def test_an_engine_takes_over_what_a_stopped_one_left(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_graph()
    one = await lab.start(
        graph=proxy, worker={"drain_timeout_seconds": 0.2, "takeover_idle_seconds": 1.0}
    )
    await proxy.refuse()
    with as_():
        entries = [await one.store(f"note {n}") for n in range(20)]
    await asyncio.sleep(0.3)
    await one.stop()
    two = await lab.start(worker={"takeover_idle_seconds": 1.0})
    assert await two.settle(60)
    keys = [entry.key for entry in entries]
    assert set(await two.parts.cold.get(keys)) == set(keys)


async def test_a_stop_while_stores_go_on_loses_nothing(lab: Lab, as_: As) -> None:
    one = await lab.start()
    stored: list[str] = []
    refused: list[MemoryEngineError] = []

    async def writer(name: int) -> None:
        with as_(session_id=f"s-{name}"):
            while True:
                try:
                    stored.append((await one.store(f"note of {name}")).key)
                except MemoryEngineError as error:
                    refused.append(error)
                    return

    async def stop() -> None:
        await asyncio.sleep(0.4)
        await one.stop()

    await asyncio.gather(*map(writer, range(4)), stop())
    assert stored
    assert len(refused) == 4
    two = await lab.start()
    assert await two.settle(60)
    assert set(await two.parts.cold.get(stored)) == set(stored)


async def test_a_clock_that_jumps_keeps_versions_order_and_expiry_sane(lab: Lab, as_: As) -> None:
    clock = MovedClock()
    container = lab.container()
    container.clock.override(providers.Object(clock))
    engine = await lab.start(container)
    hour = timedelta(hours=1)
    with as_(), lab.redis.client() as raw:
        entry = await engine.store("first")
        await engine.delegate("ENG:BETA", expires_at=clock() + 2 * hour)
        clock.ahead = -hour
        back = await engine.update(entry.key, content="an hour before it was made")
        assert back.version == entry.version + 1
        assert back.created_at == entry.created_at
        earlier = await engine.store("second, an hour earlier")
        assert await engine.revoke("ENG:BETA") is True
        assert await engine.revoke("ENG:BETA") is False
        clock.ahead = hour
        ahead = await engine.update(entry.key, content="an hour later")
        later = await engine.store("third, an hour later")
        assert ahead.version == back.version + 1
        for _ in ("hot", "cold"):
            # Ordered by what the clock said, the same in both tiers.
            found = await engine.find()
            assert [e.key for e in found] == [later.key, entry.key, earlier.key]
            assert await engine.retrieve(entry.key) == ahead
            scope = MemoryScope(date_from=entry.created_at, date_to=entry.created_at)
            assert [e.key for e in await engine.find(scope=scope)] == [entry.key]
            hits = await engine.search("hour", min_similarity=0)
            assert all(0 <= e.relevance_score <= 1 for e in hits)
            if _ == "hot":
                home = names.entry("s-1", "ENG:ALPHA", entry.key)
                assert 0 < raw.ttl(home) <= 86_400, "a TTL is of the server's clock"
                await engine.close_session("s-1")
        assert (await engine.parts.cold.get([entry.key]))[entry.key].version == ahead.version
        clock.ahead = -24 * hour
        assert await engine.delete(entry.key)
        assert await engine.settle()
        assert await engine.retrieve(entry.key) is None
        again = await engine.store("a new life", key=entry.key)
        assert again.version > ahead.version + 1


async def test_a_delegation_expires_by_the_clock_and_not_before(lab: Lab, as_: As) -> None:
    clock = MovedClock()
    container = lab.container()
    container.clock.override(providers.Object(clock))
    engine = await lab.start(container)
    with as_("ENG:ALPHA"):
        entry = await engine.store("for beta, and whom beta trusts")
        await engine.share(entry.key, "ENG:BETA")
    with as_("ENG:BETA"):
        await engine.delegate("ENG:GAMMA", expires_at=clock() + timedelta(hours=1))
    with as_("ENG:GAMMA"):
        for ahead, readable in ((0, True), (59, True), (61, False), (-60, True), (120, False)):
            clock.ahead = timedelta(minutes=ahead)
            found = await engine.find()
            assert [e.key for e in found] == ([entry.key] if readable else []), ahead
