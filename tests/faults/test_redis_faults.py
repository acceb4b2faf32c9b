"""Redis slow, full, read-only, away, restarting, and connections that die in the middle.

Each test says what the caller sees, that nothing acknowledged is lost, and that health tells.
"""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryEngineError, MemoryUnavailableError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.interfaces import CXPPacket, HealthStatus
from orchestrata_memory.models import KeyState, MemoryScope
from tests.engine.conftest import As
from tests.faults.conftest import Lab, until

pytestmark = pytest.mark.servers


async def in_cold(engine: MemoryEngine, keys: list[str]) -> set[str]:
    assert await engine.settle(100)
    return set(await engine.parts.cold.get(keys))


async def test_slow_redis_delays_and_then_refuses_by_a_typed_error(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    with as_():
        proxy.latency = 0.2
        late = await engine.store("slow, but stored")
        proxy.stall()
        with pytest.raises(MemoryUnavailableError, match=r"Redis.*in time"):
            await engine.store("never answered")
        health = await engine.get_health()
        assert health.parts["hot"].status is HealthStatus.UNHEALTHY
        await proxy.heal()
        after = await engine.store("quick again")
        assert await engine.retrieve(late.key) == late
    assert await in_cold(engine, [late.key, after.key]) == {late.key, after.key}

    async def healthy() -> bool:
        return (await engine.get_health()).status is HealthStatus.HEALTHY

    await until(healthy)


async def test_a_close_that_was_not_recorded_is_not_acknowledged(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    with as_():
        entry = await engine.store("the harbour opens at dawn")
        assert await engine.settle()
        await proxy.refuse()
        with pytest.raises(MemoryUnavailableError, match="Redis"):
            await engine.close_session("s-1")
        await proxy.heal()

    async def moved() -> bool:
        return (await engine.parts.hot.read([entry.key]))[entry.key].state is KeyState.COLD

    await until(moved)
    assert await engine.parts.hot.is_closed("s-1")


async def test_reads_go_on_from_the_graph_while_redis_is_away(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    with as_():
        entry = await engine.store("the harbour opens at dawn", tags=["t"])
        gone = await engine.store("the anchor is lost")
        assert await engine.delete(gone.key)
        assert await engine.settle()
        assert await engine.search("harbour", min_similarity=0)
        with as_(session_id="s-0"):
            source = await engine.store("the crane lifts forty tonnes")
            summary = await engine.store_summary("s-0")
            assert summary is not None
            await engine.close_session("s-0")
            assert await engine.settle()
        await proxy.refuse()
        assert await engine.retrieve(summary.key) == summary
        lineage = await engine.lineage(summary.key)
        assert [one.entry.key for one in lineage.sources] == [source.key]
        assert {one.entry.key for one in await engine.related(summary.key)} >= {source.key}
        assert set((await engine.summarize("s-0")).source_keys) == {source.key}
        injected = await engine.inject(CXPPacket(), "crane")
        assert source.key in injected.summary.source_keys
        assert await engine.retrieve(entry.key) == entry
        here = MemoryScope(session_id="s-1")
        found = await engine.search("harbour dawn", scope=here, min_similarity=0)
        assert [e.key for e in found] == [entry.key]
        assert [e.key for e in await engine.find(tags=["t"])] == [entry.key]
        for refused in (
            engine.store("x"),
            engine.store("x", key="explicit"),
            engine.update(entry.key, content="y"),
            engine.delete(entry.key),
            engine.share(entry.key, "ENG:BETA"),
            engine.delegate("ENG:BETA"),
        ):
            with pytest.raises(MemoryUnavailableError, match="Redis"):
                await refused
        health = await engine.get_health()
        assert health.status is HealthStatus.UNHEALTHY
        assert health.parts["hot"].status is HealthStatus.UNHEALTHY
        await proxy.heal()
        assert (await engine.update(entry.key, content="at dusk")).version == 2
        assert (await engine.store("x", key="explicit")).version == 1


async def test_what_a_lost_redis_knew_is_not_answered_from_the_graph(lab: Lab, as_: As) -> None:
    proxy, graph = await lab.proxy_redis(), await lab.proxy_graph()
    engine = await lab.start(redis=proxy, graph=graph)
    with as_():
        deleted = await engine.store("deleted, but the graph does not know")
        updated = await engine.store("updated, but the graph does not know")
        assert await engine.settle()
        await graph.refuse()
        assert await engine.delete(deleted.key)
        await engine.update(updated.key, content="the newer text")
        young = await engine.store("stored, but the graph does not know")
        await proxy.refuse()
        await graph.heal()
        for key in (deleted.key, updated.key, young.key):
            with pytest.raises(MemoryUnavailableError, match="Redis"):
                await engine.retrieve(key)
        assert await engine.search("the graph does not know", min_similarity=0) == []
        assert await engine.find() == []
        await proxy.heal()
        assert await engine.retrieve(deleted.key) is None
        assert {e.key for e in await engine.find()} == {updated.key, young.key}


async def test_full_redis_refuses_stores_and_keeps_what_it_has(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    with as_(), lab.redis.client() as raw:
        kept = [await engine.store(f"kept {n}") for n in range(5)]
        used = int(raw.info("memory")["used_memory"])
        raw.config_set("maxmemory", str(used // 2))
        try:
            with pytest.raises(MemoryUnavailableError, match="full"):
                await engine.store("no room")
            with pytest.raises(MemoryUnavailableError, match="full"):
                await engine.update(kept[0].key, content="no room either")
            assert await engine.retrieve(kept[0].key) == kept[0]
            health = await engine.get_health()
            assert health.parts["hot"].status is not HealthStatus.HEALTHY
            assert "full" in health.parts["hot"].message
        finally:
            raw.config_set("maxmemory", "0")
        assert await engine.store("room again")
        found = await in_cold(engine, [e.key for e in kept])
    assert found == {e.key for e in kept}


async def test_a_redis_without_its_replicas_takes_no_writes(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    with as_(), lab.redis.client() as raw:
        kept = await engine.store("kept")
        raw.config_set("min-replicas-to-write", "1")
        try:
            with pytest.raises(MemoryUnavailableError, match="replicas"):
                await engine.store("refused")
            assert await engine.retrieve(kept.key) == kept
            health = await engine.get_health()
            assert health.status is not HealthStatus.HEALTHY
        finally:
            raw.config_set("min-replicas-to-write", "0")
        again = await engine.store("taken")
    assert await in_cold(engine, [kept.key, again.key]) == {kept.key, again.key}


async def test_a_master_turned_replica_is_said_to_be_read_only(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    with as_(), lab.redis.client() as raw:
        kept = await engine.store("kept")
        assert await engine.settle()
        # A master nobody can reach: the data stay, writes are refused.
        raw.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            with pytest.raises(MemoryUnavailableError, match=r"read-only|replica"):
                await engine.store("refused")
            health = await engine.get_health()
            assert health.parts["hot"].status is HealthStatus.UNHEALTHY
            assert "replica" in health.parts["hot"].message
        finally:
            raw.execute_command("REPLICAOF", "NO", "ONE")
        assert await engine.retrieve(kept.key) == kept
        assert (await engine.store("taken")).version == 1


async def test_redis_restarts_under_load(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    acknowledged: list[str] = []
    refused: list[MemoryEngineError] = []
    over = asyncio.Event()

    async def writer(name: int) -> None:
        with as_(session_id=f"s-{name}"):
            while not over.is_set():
                try:
                    entry = await engine.store(f"note {len(acknowledged)} of {name}")
                except MemoryEngineError as error:
                    refused.append(error)
                    await asyncio.sleep(0.1)
                else:
                    acknowledged.append(entry.key)

    async def more_acknowledged() -> None:
        wanted = len(acknowledged) + 40

        async def reached() -> bool:
            return len(acknowledged) >= wanted

        await until(reached)

    async def restart() -> None:
        try:
            await more_acknowledged()
            lab.redis.kill()
            await asyncio.sleep(0.5)
            await asyncio.to_thread(lab.redis.start)
            await more_acknowledged()
        finally:
            over.set()

    await asyncio.gather(*map(writer, range(4)), restart())
    assert refused, "no store met the restart"
    assert {type(error) for error in refused} == {MemoryUnavailableError}
    assert await in_cold(engine, acknowledged) == set(acknowledged)
    stored = await engine.parts.cold.counts()
    # What was not acknowledged may have been done, once; nothing else is there.
    assert len(acknowledged) <= stored["all"] <= len(acknowledged) + len(refused)


async def test_a_hanging_redis_is_survived(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    with as_():
        kept = await engine.store("kept")
        pid = _redis_pid(lab)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(MemoryUnavailableError, match="in time"):
                await engine.store("hangs")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert await engine.retrieve(kept.key) == kept
        after = await engine.store("after")
    assert await in_cold(engine, [kept.key, after.key]) == {kept.key, after.key}


def _redis_pid(lab: Lab) -> int:
    with lab.redis.client() as raw:
        return int(raw.info("server")["process_id"])


@pytest.mark.parametrize("idle", ["closed", "forgotten"])
async def test_stale_idle_connections_are_replaced(lab: Lab, as_: As, idle: str) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    with as_():
        entries = await asyncio.gather(*(engine.store(f"note {n}") for n in range(12)))
        assert await engine.settle()
        if idle == "closed":
            proxy.cut_all()
            # Nobody sees a closed one: every connection is looked at before it is used.
            found = await asyncio.gather(*(engine.retrieve(entry.key) for entry in entries))
            assert found == list(entries)
            assert await asyncio.gather(*(engine.store(f"more {n}") for n in range(12)))
        else:
            proxy.forget_all()
            for _ in range(20):
                try:
                    await engine.store("one dead connection after the other is found out")
                except MemoryUnavailableError:
                    continue
                break
            else:
                pytest.fail("the dead connections were never replaced")


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("after", [0, 3])
async def test_a_reply_cut_in_the_middle_doubles_nothing(
    lab: Lab, as_: As, *, explicit: bool, after: int
) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    with as_():
        await engine.store("so that the scripts are known")
        await engine.settle()
        before = (await engine.parts.cold.counts())["all"]
        proxy.cut_reply(lambda data: b"cut in the middle" in data, after=after)
        try:
            entry = await engine.store("cut in the middle", key="k" if explicit else None)
        except MemoryUnavailableError:
            entry = None
        assert proxy.cuts == 1
        assert await engine.settle(100)
        stored = [e for e in await engine.find(limit=100) if e.content == "cut in the middle"]
        assert len(stored) == 1, "the script ran once, whatever its caller was told"
        assert entry is None or stored == [entry]
        assert (await engine.parts.cold.counts())["all"] == before + 1
        with lab.redis.client() as raw:
            assert raw.zcard(names.index("s-1", "ENG:ALPHA")) == before + 1


async def test_replies_cut_at_random_keep_the_worker_going(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    stored: list[str] = []
    with as_():
        for number in range(30):
            proxy.cut_reply(lambda data: True, after=number % 5)
            try:
                stored.append((await engine.store(f"note {number}")).key)
            except MemoryUnavailableError:
                continue
    await proxy.heal()
    assert proxy.cuts >= 10
    assert await in_cold(engine, stored) == set(stored)
    states = await engine.parts.hot.read(stored)
    assert all(state.state is KeyState.LIVE for state in states.values())
