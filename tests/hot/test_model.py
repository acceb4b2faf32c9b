"""Random histories against a small model: nothing is lost, nothing comes back, counts are exact.

The model's cold tier takes writes guarded by version, late, twice and in any order, as the graph
does. Whatever happens, a key reads as its newest acknowledged state from hot, else from cold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from orchestrata_memory.hot import keys
from orchestrata_memory.hot.base import Confirmation, OutboxRecord, VersionConflictError
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import KeyState, MemoryRecord
from tests.hot.making import audit, later, record, vector

pytestmark = pytest.mark.servers

KEYS = ("index", "a:b")
SESSIONS = ("s", "s:1")

_key = st.sampled_from(KEYS)
_session = st.sampled_from(SESSIONS)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking on real servers takes minutes
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), _key, _session),
        st.tuples(st.just("store"), _key, _session),
        st.tuples(st.just("update"), _key, st.integers(0, 3)),
        st.tuples(st.just("update"), _key, st.integers(0, 3)),
        st.tuples(st.just("delete"), _key, st.none()),
        st.tuples(st.just("promote"), _key, _session),
        st.tuples(st.just("attach"), _key, st.none()),
        st.tuples(st.just("work"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("lose"), st.integers(1, 3), st.none()),
        st.tuples(st.just("work"), st.just(5), st.just(True)),
        st.tuples(st.just("confirm_early"), st.integers(1, 2), st.none()),
        st.tuples(st.just("replay"), st.integers(0, 20), st.none()),
        st.tuples(st.just("bury"), st.none(), st.none()),
        st.tuples(st.just("revive"), st.none(), st.none()),
        st.tuples(st.just("close"), _session, st.none()),
        st.tuples(st.just("expire"), st.integers(0, 20), st.none()),
        st.tuples(st.just("expire_entries"), st.none(), st.booleans()),
        st.tuples(st.just("sweep"), st.none(), st.none()),
    ),
    min_size=30,
    max_size=60,
)


@dataclass
class World:
    """The truth, and a cold tier."""

    hot: RedisHotStore
    raw: redis.Redis
    truth: dict[str, MemoryRecord] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    cold: dict[str, tuple[int, MemoryRecord | None]] = field(default_factory=dict)
    old: list[OutboxRecord] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)

    def write_cold(self, each: OutboxRecord) -> None:
        if each.version > self.cold.get(each.key, (0, None))[0]:
            self.cold[each.key] = (each.version, each.record)

    async def store(self, key: str, session: str) -> None:
        version = self.versions.get(key, 0) + 1
        made = record(key, session_id=session, project_id=f"p {session}", version=version)
        state = (await self.hot.read([key]))[key].state
        if key in self.truth and state is KeyState.UNKNOWN:
            return  # the engine looks it up in cold and refuses
        try:
            made = await self.hot.insert(made, audit())
        except VersionConflictError:
            assert key in self.truth
            return
        assert key not in self.truth
        self.truth[key], self.versions[key] = made, version

    async def update(self, key: str, number: int) -> None:
        if key in self.truth:
            tags = tuple(f"tag {n}" for n in range(number))
            made = later(self.truth[key], content=f"content {number}", tags=tags)
            await self.hot.replace(made, audit(), expected_version=made.version - 1)
            self.truth[key], self.versions[key] = made, made.version

    async def delete(self, key: str, _: None) -> None:
        if key in self.truth:
            await self.hot.tombstone(self.truth.pop(key), audit())
            self.versions[key] += 1

    async def promote(self, key: str, session: str) -> None:
        version, cold = self.cold.get(key, (0, None))
        if cold is not None and await self.hot.promote(session, cold, vector(version)):
            assert session not in self.closed
            assert self.truth.get(key) == cold, "a stale or deleted entry was promoted"

    async def attach(self, key: str, _: None) -> None:
        if key in self.truth:
            await self.hot.attach_vectors({key: vector(self.truth[key].version)})

    async def work(self, count: int, confirm: bool) -> None:
        taken = await self.hot.take("w", count=count, block_seconds=0)
        taken += await self.hot.take_over("w", idle_seconds=0, count=count)
        for each in taken:
            assert isinstance(each, OutboxRecord)
            self.write_cold(each)
            self.old.append(each)
        if confirm:
            await self.confirm(taken)

    async def confirm(self, taken: list[OutboxRecord]) -> None:
        """What cold holds by now, which may be newer than the record."""
        await self.hot.confirm(
            [
                Confirmation(outbox_id=each.outbox_id, key=each.key, version=self.cold[each.key][0])
                for each in taken
            ]
        )

    async def lose(self, count: int, _: None) -> None:
        """A worker takes records and dies."""
        await self.hot.take("dead", count=count, block_seconds=0)

    async def confirm_early(self, count: int, _: None) -> None:
        """A mistaken worker confirms what cold holds for records it has not written."""
        taken = await self.hot.take("w", count=count, block_seconds=0)
        taken += await self.hot.take_over("w", idle_seconds=0, count=count)
        await self.confirm([each for each in taken if each.key in self.cold])

    async def replay(self, number: int, _: None) -> None:
        if self.old:
            each = self.old[number % len(self.old)]
            self.write_cold(each)
            await self.confirm([each])

    async def bury(self, *_: None) -> None:
        for each in await self.hot.take_over("w", idle_seconds=0, count=1):
            await self.hot.bury(each.outbox_id, "refused")

    async def revive(self, *_: None) -> None:
        await self.hot.revive()

    async def close(self, session: str, _: None) -> None:
        await self.hot.mark_closed(session)
        self.closed.add(session)
        await self.hot.drop_replicas(session)
        for key, state in (await self.hot.session_keys(session)).items():
            if self.cold.get(key, (0, None))[0] >= state.version:
                await self.hot.move_out(key, state.version)

    async def expire(self, number: int, _: None) -> None:
        names = sorted(name for name in self.raw.keys("*") if self.raw.ttl(name) > 0)
        if names:
            self.raw.delete(names[number % len(names)])

    async def expire_entries(self, _: None, sweep: bool) -> None:
        for name in self.raw.keys("*"):
            if keys.parse(name).kind is keys.NameKind.ENTRY:
                self.raw.delete(name)
        if sweep:
            await self.hot.sweep()

    async def sweep(self, *_: None) -> None:
        await self.hot.sweep()

    async def check(self) -> None:
        states = await self.hot.read(KEYS)
        for key in KEYS:
            state = states[key]
            found = state.record
            if state.state is KeyState.UNKNOWN or (state.state is KeyState.COLD and not found):
                found = self.cold.get(key, (0, None))[1]
            assert found == self.truth.get(key), (key, state.state)

    async def check_counts(self) -> None:
        sessions = {f"session:{each}" for each in SESSIONS}
        projects = {f"project:p {each}" for each in SESSIONS}
        expected = dict.fromkeys(sessions | projects, 0) | {"all": len(self.truth)}
        for made in self.truth.values():
            expected[f"session:{made.session_id}"] += 1
            expected[f"project:{made.project_id}"] += 1
        assert await self.hot.census(list(expected)) == expected

    async def settle(self) -> None:
        """Everything written behind, every session closed: only markers may remain."""
        await self.hot.revive()
        while await self.hot.outbox_length():
            await self.work(100, True)
        for session in SESSIONS:
            await self.close(session, None)
        await self.hot.sweep()
        await self.hot.sweep()
        kinds = {keys.parse(name).kind for name in self.raw.keys("*")}
        assert kinds <= {keys.NameKind.POINTER, keys.NameKind.POSITIONS, keys.NameKind.OTHER}
        cold = {key: made for key, (_, made) in self.cold.items() if made is not None}
        assert cold == self.truth


@settings(
    max_examples=50,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
async def test_random_histories(
    hot: RedisHotStore, raw: redis.Redis, steps: list[tuple[str, object, object]]
) -> None:
    raw.flushall()
    await hot.census(["all"])
    await hot.seed_census({"all": 0})
    world = World(hot, raw)
    for name, *arguments in steps:
        await getattr(world, name)(*arguments)
        await world.check()
    await world.check_counts()
    await world.settle()
    await world.check()
    await world.check_counts()
