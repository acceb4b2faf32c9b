"""The graph slow, refusing, stalled, restarting, and its connections cut in the middle."""

from __future__ import annotations

import asyncio

import pytest

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryUnavailableError
from orchestrata_memory.interfaces import CXPPacket, HealthStatus
from orchestrata_memory.models import MemoryScope
from tests.engine.conftest import As
from tests.faults.conftest import Lab, until

pytestmark = pytest.mark.servers


async def healthy(engine: MemoryEngine) -> bool:
    return (await engine.get_health()).status is HealthStatus.HEALTHY


@pytest.mark.parametrize("fault", ["slow", "refusing", "stalled", "trickling"])
async def test_hot_works_on_and_everything_arrives_later(lab: Lab, as_: As, fault: str) -> None:
    proxy = await lab.proxy_graph()
    engine = await lab.start(graph=proxy)
    with as_():
        cold_only = await engine.store("the lighthouse keeper retired")
        await engine.close_session("s-1")
        match fault:
            case "slow":
                proxy.latency = 0.15
            case "refusing":
                await proxy.refuse()
            case "stalled":
                proxy.stall()
            case "trickling":
                proxy.rate = 5
        with as_(session_id="s-2"):
            entries = [await engine.store(f"note {n}", tags=["t"]) for n in range(10)]
            assert await engine.retrieve(entries[3].key) == entries[3]
            here = MemoryScope(session_id="s-2")
            found = await engine.search("note 3", scope=here, min_similarity=0, limit=10)
            assert {e.key for e in found} == {e.key for e in entries}
            assert len(await engine.find(tags=["t"], scope=here, limit=20)) == 10
            changed = await engine.update(entries[0].key, content="changed meanwhile")
            assert await engine.delete(entries[1].key)
            left = {e.key for e in entries if e.key != entries[1].key}
            summary = await engine.summarize("s-2", max_tokens=500)
            assert set(summary.source_keys) == left
            packet = CXPPacket()
            await engine.inject(packet, "note 3", budget_tokens=500)
            assert set(packet.metadata["memory_context"]["injected_keys"]) >= left
        if fault != "slow":
            with pytest.raises(MemoryUnavailableError, match="the graph"):
                await engine.store("an explicit key needs the graph", key="explicit")
            with pytest.raises(MemoryUnavailableError, match="the graph"):
                await engine.retrieve(cold_only.key)

            async def said() -> bool:
                health = await engine.get_health()
                return HealthStatus.UNHEALTHY in {
                    health.parts["cold"].status,
                    health.status,
                }

            await until(said)
        await proxy.heal()
        assert await engine.settle(120)
        assert (await engine.store("free again", key="explicit")).version == 1
        kept = {e.key: e.content for e in entries if e.key != entries[1].key}
        kept[changed.key] = changed.content
        cold = await engine.parts.cold.get([e.key for e in entries])
        assert {key: record.content for key, record in cold.items()} == kept
        assert await engine.retrieve(cold_only.key) == cold_only
    await until(lambda: healthy(engine))


async def test_the_graph_restarts_while_stores_go_on(lab: Lab, as_: As) -> None:
    if not lab.graph.killable:
        pytest.skip("this graph server is not ours to kill")
    engine = await lab.start()
    keys: list[str] = []
    stop = asyncio.Event()

    async def writer() -> None:
        with as_():
            while not stop.is_set():
                keys.append((await engine.store(f"note {len(keys)}")).key)
                await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        group.create_task(writer())
        await asyncio.sleep(0.5)
        lab.graph.kill()
        await asyncio.sleep(1.0)
        await asyncio.to_thread(lab.graph.start)
        await asyncio.sleep(0.5)
        stop.set()
    await until(engine.settle, 120)
    assert set(await engine.parts.cold.get(keys)) == set(keys)
    assert (await engine.parts.cold.counts())["all"] == len(keys)


async def test_connections_cut_in_a_reply_confirm_nothing_twice(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_graph()
    engine = await lab.start(graph=proxy)
    keys = []
    with as_(task_id="t", project_id="p"):
        for number in range(15):
            proxy.cut_reply(lambda data: len(data) > 200, after=number)
            keys.append((await engine.store(f"note {number}")).key)
            await asyncio.sleep(0.1)
    await proxy.heal()
    assert proxy.cuts >= 3
    assert await engine.settle(100)
    assert set(await engine.parts.cold.get(keys)) == set(keys)
    with lab.graph.driver() as driver:
        rows = driver.execute_query(
            "MATCH (m:Memory) OPTIONAL MATCH (m)-[r]->(n) WITH m, count(r) AS links, "
            "count(DISTINCT type(r)) AS kinds RETURN count(m), min(links), max(links), min(kinds)",
            database_=lab.graph.database,
        ).records
    assert rows[0].values() == [15, 4, 4, 4]


@pytest.mark.parametrize("idle", ["closed", "forgotten"])
async def test_a_stale_idle_connection_is_replaced(lab: Lab, as_: As, idle: str) -> None:
    proxy = await lab.proxy_graph()
    engine = await lab.start(graph=proxy)
    with as_():
        entry = await engine.store("the lighthouse keeper retired")
        await engine.close_session("s-1")
        assert await engine.retrieve(entry.key) == entry
        if idle == "closed":
            proxy.cut_all()
            assert await engine.retrieve(entry.key) == entry
        else:
            proxy.forget_all()

            async def found() -> bool:
                try:
                    return await engine.retrieve(entry.key) == entry
                except MemoryUnavailableError:
                    return False

            await until(found)
        after = await engine.store("afterwards")
        assert await engine.settle(60)
        assert set(await engine.parts.cold.get([after.key])) == {after.key}


@pytest.mark.traces("REQ-010-010", "REQ-010-024")
async def test_no_ttl_runs_out_on_what_the_graph_lacks(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_graph()
    engine = await lab.start(
        graph=proxy, redis={"ttl_seconds": 1}, worker={"sweep_interval_seconds": 0.5}
    )
    with as_():
        safe = await engine.store("the graph has this one", tags=["t"])
        assert await engine.settle()
        await proxy.refuse()
        entry = await engine.store("the graph lacks this one", tags=["t"])
        changed = await engine.update(entry.key, content="the graph lacks this text")
        gone = await engine.store("the graph never gets this one")
        assert await engine.delete(gone.key)
        for _ in range(6):
            await asyncio.sleep(0.5)
            assert await engine.retrieve(entry.key) == changed
            found = await engine.search("lacks", min_similarity=1.0)
            assert [e.key for e in found] == [entry.key]
            assert await engine.retrieve(gone.key) is None
        await proxy.heal()
        assert await engine.settle(60)
        assert set(await engine.parts.cold.get([safe.key, entry.key, gone.key])) == {
            safe.key,
            entry.key,
        }
        assert await engine.retrieve(entry.key) == changed
        assert {e.key for e in await engine.find(tags=["t"])} == {safe.key, entry.key}
        assert await engine.retrieve(gone.key) is None
