"""Everything at once, and watchers who look all the time.

Two engines with running workers store, change, delete, share, move, close, promote, sweep and lose
hashes to expiry, while watchers read by every means: what was acknowledged before a look must be in
its answer, at that version or a newer one, and what was deleted before it must not (rules 2, 3 and
11 of the guarantees). A find or search may leave out what others change while it looks.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
import redis

from orchestrata_memory.container import build_engine
from orchestrata_memory.engine.bound import BoundMemory
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.hot import keys
from orchestrata_memory.models import MemoryContext, MemoryEntry, MemoryScope
from tests.engine.conftest import engine_settings
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers

OWNER = "ENG:ALPHA"
READER = "ENG:BETA"
ENTRIES = 30
ROUNDS = 25
SESSIONS = ("closing", "moving", "staying")
EVERYTHING = 1000


@dataclass
class Scene:
    """What was acknowledged so far.

    Attributes:
        versions: Newest acknowledged version by key.
        doomed: Keys whose deletion was begun; `gone`: and acknowledged.
        changes: How often each key's change was begun or ended.
    """

    engines: list[MemoryEngine]
    raw: redis.Redis
    chance: random.Random
    versions: dict[str, int] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    changes: Counter[str] = field(default_factory=Counter)
    looks: int = 0

    def owner(self, session: str = "staying") -> BoundMemory:
        return self._as(OWNER, session)

    def _as(self, volk: str, session: str) -> BoundMemory:
        context = MemoryContext(volk_id=volk, session_id=session, project_id="p", task_id="t")
        return BoundMemory(self.chance.choice(self.engines), context)

    def live(self) -> list[str]:
        return sorted(self.versions.keys() - self.doomed)

    # --- who works -----------------------------------------------------------------------
    async def store(self) -> None:
        session = self.chance.choice(SESSIONS)
        entry = await self.owner(session).store(f"falcon {len(self.versions)}", tags=["seen"])
        self.versions[entry.key] = entry.version

    async def change(self) -> None:
        key = self.chance.choice([each for each in self.live() if self.changes[each] % 2 == 0])
        choice = self.chance.randrange(3)
        if choice == 0:
            changing = self.owner().share(key, READER)
        elif choice == 1:
            changing = self.owner().unshare(key, READER)
        else:
            changing = self.owner().update(key, content=f"falcon {self.chance.random()}")
        await self._changed(key, changing)

    async def _changed(self, key: str, changing: Awaitable[MemoryEntry]) -> None:
        self.changes[key] += 1
        entry = await changing
        self.changes[key] += 1
        self.versions[key] = max(self.versions[key], entry.version)

    async def delete(self) -> None:
        if len(self.live()) <= ENTRIES // 2:
            return
        key = self.chance.choice([each for each in self.live() if self.changes[each] % 2 == 0])
        self.doomed.add(key)
        assert await self.owner().delete(key)
        self.gone.add(key)

    async def move(self) -> None:
        await self.owner().migrate_to_cold("moving")
        if self.chance.random() < 0.2:
            await self.chance.choice(self.engines).close_session("closing")

    async def promote(self) -> None:
        await self._as(OWNER, "staying").search("falcon", limit=20, min_similarity=0)

    async def expire(self) -> None:
        names = [n for n in self.raw.scan_iter("*") if keys.parse(n).kind is keys.NameKind.ENTRY]
        if names:
            self.raw.delete(self.chance.choice(sorted(names)))
        if self.chance.random() < 0.3:
            await self.engines[0].parts.hot.sweep()

    # --- who watches ---------------------------------------------------------------------
    async def watch(self, ways: list[Callable[[], Awaitable[dict[str, int]]]]) -> None:
        for way in ways:
            before, changes = dict(self.versions), self.changes.copy()
            gone = set(self.gone)
            seen = await way()
            self.looks += 1
            for key, version in before.items():
                still = changes[key] == self.changes[key] and changes[key] % 2 == 0
                if key not in self.doomed and (still or way == self.by_retrieve):
                    assert seen.get(key, 0) >= version, (way.__name__, key, version)
            assert not gone & seen.keys(), (way.__name__, gone & seen.keys())

    async def by_retrieve(self) -> dict[str, int]:
        known = list(self.versions)
        found = await asyncio.gather(*(self.owner().retrieve(key) for key in known))
        return {entry.key: entry.version for entry in found if entry is not None}

    async def by_find(self) -> dict[str, int]:
        found = await self.owner().find(tags=["seen"], limit=EVERYTHING)
        return {entry.key: entry.version for entry in found}

    async def by_search(self) -> dict[str, int]:
        scope = MemoryScope(project_id="p")
        found = await self.owner().search("falcon", scope=scope, limit=EVERYTHING, min_similarity=0)
        return {entry.key: entry.version for entry in found}


@pytest.fixture
async def scene(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        engines = [
            await stack.enter_async_context(
                build_engine(
                    engine_settings(
                        clean_redis,
                        clean_graph,
                        tmp_path_factory.mktemp("instants"),
                        worker={"sweep_interval_seconds": 0.5, "takeover_idle_seconds": 1.0},
                    )
                )
            )
            for _ in range(2)
        ]
        raw = stack.enter_context(clean_redis.client())
        yield Scene(engines, raw, random.Random(7))


@pytest.mark.traces("REQ-010-008", "REQ-010-011", "REQ-010-032")
async def test_nothing_is_missing_and_nothing_comes_back_at_any_instant(scene: Scene) -> None:
    for _ in range(ENTRIES):
        await scene.store()
    working = True

    async def work(step: Callable[[], Awaitable[None]]) -> None:
        for _ in range(ROUNDS):
            await step()
            await asyncio.sleep(scene.chance.random() / 50)

    async def watch(way: Callable[[], Awaitable[dict[str, int]]]) -> None:
        while working:
            await scene.watch([way])

    async with asyncio.TaskGroup() as watchers:
        for way in (scene.by_retrieve, scene.by_find, scene.by_search):
            watchers.create_task(watch(way))
        try:
            async with asyncio.TaskGroup() as workers:
                for step in (
                    scene.store,
                    scene.change,
                    scene.change,
                    scene.delete,
                    scene.move,
                    scene.promote,
                    scene.expire,
                ):
                    workers.create_task(work(step))
        finally:
            working = False
    assert await scene.engines[0].settle()
    await scene.watch([scene.by_retrieve, scene.by_find, scene.by_search])
    assert scene.looks > 10
    assert len(scene.gone) > 5
