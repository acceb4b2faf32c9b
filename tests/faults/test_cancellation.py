"""Every operation, cancelled at every await.

The operation runs as a task that is stepped by hand; after its k-th suspension it is cancelled,
for k = 0, 1, 2, … until it ends by itself. Afterwards the engine works as before, nothing is half
done, and neither a task nor a connection is left over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from itertools import count
from typing import Any

import pytest

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryEngineError, MemoryKeyExistsError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.interfaces import CXPPacket
from orchestrata_memory.models import KeyState, MemoryClassification, MemoryEntry
from tests.engine.conftest import As
from tests.faults.conftest import Lab

pytestmark = pytest.mark.servers

MOST_SUSPENSIONS = 400


class CancelAt:
    """Awaits a coroutine and cancels it at its `k`-th suspension.

    Attributes:
        reached: Whether it suspended that often.
    """

    def __init__(self, work: Coroutine[Any, Any, Any], k: int) -> None:
        self._work = work
        self._k = k
        self.reached = False

    def __await__(self) -> Generator[Any, Any, Any]:
        value: Any = None
        error: BaseException | None = None
        for step in count():
            try:
                waits_for = self._work.send(value) if error is None else self._work.throw(error)
            except StopIteration as stop:
                return stop.value
            if step == self._k:
                self.reached = True
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            value, error = None, None
            try:
                value = yield waits_for
            except BaseException as thrown:  # noqa: BLE001 - handed on to the coroutine
                error = thrown


async def cancelled_everywhere(
    operation: Callable[[int], Coroutine[Any, Any, Any]],
    check: Callable[[int, bool], Awaitable[None]],
) -> int:
    """Run `operation(k)`, cancelled at its k-th suspension, and `check(k, done)` after each."""
    for k in range(MOST_SUSPENSIONS):
        running = CancelAt(operation(k), k)

        async def run(stepped: CancelAt = running) -> Any:
            return await stepped

        task = asyncio.create_task(run())
        await asyncio.wait({task}, timeout=30)
        assert task.done(), f"cancelled at suspension {k}, it never ended"
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert isinstance(error, MemoryEngineError), repr(error)
            assert not isinstance(error, MemoryKeyExistsError)
        await check(k, not task.cancelled())
        if not running.reached:
            return k
    pytest.fail(f"more than {MOST_SUSPENSIONS} suspensions")


def tasks_now() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if not task.done()}


async def settled(engine: MemoryEngine, lab: Lab) -> None:
    """Both tiers agree, and nothing dangles."""
    assert await engine.settle(100)
    with lab.redis.client() as raw:
        assert raw.xlen(names.OUTBOX) == 0
        assert raw.xlen(names.DEAD) == 0
        assert list(raw.scan_iter("*:claim:*")) == []


@pytest.fixture
async def engine(lab: Lab) -> MemoryEngine:
    # No promotion in the background: what an operation leaves behind is looked at here.
    return await lab.start(search={"promote": False})


async def test_a_store_with_a_generated_key(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    with as_():
        await engine.store("warm")
        quiet = tasks_now()

        async def check(k: int, done: bool) -> None:
            stored = [e for e in await engine.find(limit=1000) if e.content == f"text {k}"]
            assert len(stored) <= 1
            assert stored or not done

        runs = await cancelled_everywhere(lambda k: engine.store(f"text {k}"), check)
        assert runs >= 3
        await settled(engine, lab)
        assert tasks_now() <= quiet
        found = await engine.find(limit=1000)
        cold = await engine.parts.cold.get([e.key for e in found])
        assert len(cold) == len(found)


async def test_a_store_with_an_explicit_key(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    with as_():
        await engine.store("warm", key="warm")

        async def check(k: int, done: bool) -> None:
            # Whatever became of it, storing it again now makes it stand once.
            entry = await engine.store(f"text {k}", key=f"key {k}")
            assert entry.version == 1

        runs = await cancelled_everywhere(
            lambda k: engine.store(f"text {k}", key=f"key {k}"), check
        )
        assert runs > 5
        await settled(engine, lab)


async def test_an_update(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    with as_():
        entry = await engine.store("text", tags=["old"])
        version = entry.version

        async def check(k: int, done: bool) -> None:
            nonlocal version
            now = await engine.retrieve(entry.key)
            assert now is not None
            wanted = (f"text {k}", (f"tag {k}",))
            changed = now.version == version + 1
            assert changed or not done
            if changed:
                assert (now.content, now.tags) == wanted
                assert [e.key for e in await engine.find(tags=[f"tag {k}"])] == [entry.key]
            else:
                assert now.version == version
                assert await engine.find(tags=[f"tag {k}"]) == []
            version = now.version

        await cancelled_everywhere(
            lambda k: engine.update(entry.key, content=f"text {k}", tags=[f"tag {k}"]), check
        )
        await settled(engine, lab)
        cold = (await engine.parts.cold.get([entry.key]))[entry.key]
        assert cold.version == version


async def test_a_delete(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    entries: dict[int, MemoryEntry] = {}
    with as_():

        async def remove(k: int) -> bool:
            return await engine.delete(entries[k].key)

        async def check(k: int, done: bool) -> None:
            there = await engine.retrieve(entries[k].key)
            assert there in (None, entries[k])
            assert there is None or not done
            await engine.delete(entries[k].key)
            entries[k + 1] = await engine.store(f"text {k + 1}")

        entries[0] = await engine.store("text 0")
        await cancelled_everywhere(remove, check)
        await settled(engine, lab)
        states = await engine.parts.hot.read([e.key for e in entries.values()][:-1])
        assert {state.state for state in states.values()} <= {KeyState.DELETED, KeyState.UNKNOWN}


async def test_sharing_and_delegating(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    with as_():
        entry = await engine.store("text")

        async def both(k: int) -> None:
            await engine.share(entry.key, "ENG:BETA")
            await engine.delegate("ENG:GAMMA")
            await engine.unshare(entry.key, "ENG:BETA")
            await engine.revoke("ENG:GAMMA")

        async def check(k: int, done: bool) -> None:
            await engine.unshare(entry.key, "ENG:BETA")
            await engine.revoke("ENG:GAMMA")
            now = await engine.retrieve(entry.key)
            assert now is not None
            with as_("ENG:BETA"):
                assert await engine.find() == []

        await cancelled_everywhere(both, check)
        await settled(engine, lab)


async def test_reading(engine: MemoryEngine, lab: Lab, as_: As) -> None:
    with as_(task_id="t", project_id="p"):
        cold = [await engine.store(f"cold text {n}") for n in range(3)]
        await engine.close_session("s-1")
        with as_(session_id="s-2", task_id="t", project_id="p"):
            hot = [await engine.store(f"hot text {n}") for n in range(3)]
            assert await engine.settle()
            await engine.search("text", min_similarity=0)
            quiet = tasks_now()

            reads: list[Callable[[int], Coroutine[Any, Any, Any]]] = [
                lambda k: engine.retrieve(cold[0].key),
                lambda k: engine.retrieve(hot[0].key),
                lambda k: engine.search(f"text {k}", min_similarity=0),
                lambda k: engine.find(limit=5),
                lambda k: engine.related(cold[0].key, depth=2),
                lambda k: engine.lineage(cold[0].key),
                lambda k: engine.audit_trail(cold[0].key),
                lambda k: engine.summarize("t", max_tokens=64),
            ]

            async def check(k: int, done: bool) -> None:
                if k % 5 == 0:
                    found = await engine.search("text", min_similarity=0)
                    assert {e.key for e in found} == {e.key for e in [*cold, *hot]}

            runs = [await cancelled_everywhere(read, check) for read in reads]
            assert all(runs)
            assert await engine.settle()
            assert tasks_now() <= quiet


async def test_promoting_summaries_injection_and_closing(
    engine: MemoryEngine, lab: Lab, as_: As
) -> None:
    with as_(project_id="p"):
        cold = [await engine.store(f"cold text {n}") for n in range(3)]
        await engine.close_session("s-1")

        async def work(k: int) -> None:
            with as_(session_id=f"s {k}", project_id="p"):
                own = await engine.store(f"own {k}")
                await engine.promote(cold[0].key)
                await engine.inject(CXPPacket(), f"what to do {k}", budget_tokens=64)
                await engine.store_summary(f"s {k}", max_tokens=64)
                await engine.update(own.key, classification=MemoryClassification.SHARED)
                await engine.migrate_to_cold(f"s {k}")

        async def check(k: int, done: bool) -> None:
            if k % 10 == 0:
                await engine.close_session(f"s {k}")
                states = await engine.parts.hot.session_keys(f"s {k}")
                assert states == {}
                assert await engine.retrieve(cold[0].key) == cold[0]

        await cancelled_everywhere(work, check)
        await settled(engine, lab)


async def test_starting_and_stopping(lab: Lab, as_: As) -> None:
    """A start or a stop that was cancelled leaves nothing running once `stop` has returned."""
    quiet = tasks_now()

    async def life(k: int) -> None:
        engine: MemoryEngine = lab.container().engine()
        engines.append(engine)
        await engine.initialize()
        await engine.start()
        await engine.stop()

    engines: list[MemoryEngine] = []

    async def check(k: int, done: bool) -> None:
        await engines[-1].stop()
        assert tasks_now() <= quiet
        with lab.redis.client() as raw:
            assert [c for c in raw.client_list() if c["id"] != str(raw.client_id())] == []

    for k in [*range(0, 60, 7), *range(60, MOST_SUSPENSIONS, 31)]:
        running = CancelAt(life(k), k)

        async def run(stepped: CancelAt = running) -> None:
            await stepped

        task = asyncio.create_task(run())
        await asyncio.wait({task}, timeout=30)
        assert task.done(), f"cancelled at suspension {k}, it never ended"
        await check(k, not task.cancelled())
        if not running.reached:
            break
