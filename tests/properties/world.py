"""Real engines on real servers beside the model, and the steps of a history.

The engines' workers do not run: a history steps them by hand, lets them die in between, and hands
them old records again. Each history has sessions, keys and a project of its own, so that nothing
needs to be wiped between two.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import redis

from orchestrata_memory.cold.base import ColdStore, ColdWrite
from orchestrata_memory.engine.bound import BoundMemory
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.engine.outbox_batch import OutboxBatch
from orchestrata_memory.errors import MemoryEngineError
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.base import HotStore, OutboxRecord, StoredVector
from orchestrata_memory.models import (
    KeyState,
    MemoryClassification,
    MemoryContext,
    MemoryEntry,
    MemoryRecord,
    MemoryScope,
)
from tests.properties.model import Answer, Model, View
from tests.properties.steps import ROLES, SESSIONS, VOLKS

WORDS = ("falcon", "harbour", "dawn", "anchor", "lantern", "copper", "meadow", "violin")
EVERYTHING = 10_000
LISTS = {keys.NameKind.INDEX, keys.NameKind.TAGS, keys.NameKind.EMBEDDING_INDEX}
LASTING = {keys.NameKind.ENTRY, keys.NameKind.VECTOR, keys.NameKind.EMBEDDING, *LISTS}


@dataclass
class Clock:
    """A clock that the test moves; it also ticks, so that no two moments are the same."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


async def outcome(operation: Awaitable[Any]) -> Answer:
    """What came of it, in the model's words."""
    try:
        result = await operation
    except MemoryEngineError as error:
        return type(error)
    return View.of(result) if isinstance(result, MemoryEntry) else result


@dataclass
class World:
    """One history under way.

    Attributes:
        engines: Two, on one Redis and one graph.
        records: Outbox records (fields as stored) that were taken once.
        writes: What was written to cold once.
        read_earlier: What was read from cold in order to be promoted.
    """

    engines: list[MemoryEngine]
    clock: Clock
    raw: redis.Redis
    number: int
    model: Model = field(default_factory=lambda: Model(dict(ROLES)))
    keys: list[str] = field(default_factory=list)
    records: list[dict[str, str]] = field(default_factory=list)
    writes: list[ColdWrite] = field(default_factory=list)
    read_earlier: list[tuple[MemoryRecord, StoredVector]] = field(default_factory=list)
    contents: int = 0
    turn: int = 0

    # --- helpers -------------------------------------------------------------------------
    @property
    def engine(self) -> MemoryEngine:
        """The two take turns."""
        return self.engines[self.turn % len(self.engines)]

    @property
    def hot(self) -> HotStore:
        return self.engine.parts.hot

    @property
    def cold(self) -> ColdStore:
        return self.engine.parts.cold

    @property
    def project(self) -> str:
        return f"p{self.number:05}"

    def session(self, name: str) -> str:
        return f"{name}-{self.number:05}"

    def as_(self, volk: str, session: str = "s") -> BoundMemory:
        return BoundMemory(
            self.engine,
            MemoryContext(
                volk_id=volk,
                session_id=self.session(session),
                task_id=f"t{self.number:05}",
                project_id=self.project,
            ),
        )

    def text(self) -> str:
        """A content that no other has."""
        self.contents += 1
        picks = random.Random(self.contents)
        return f"{' '.join(picks.sample(WORDS, 4))} number{self.contents}"

    def pick(self, number: int) -> str:
        """A live key, mostly."""
        live = [key for key in self.keys if key in self.model.live]
        known = live if live and number % 5 else self.keys
        if not known:
            self.keys.append(f"never-{self.number:05}")
        return known[number % len(known)]

    def actor(self, actor: str | None, key: str) -> str:
        owner = self.model.live[key].owner if key in self.model.live else next(iter(ROLES))
        return actor or owner

    def _know(self, key: str, entry: MemoryEntry) -> None:
        if key not in self.keys:
            self.keys.append(key)
        self.model.created[key] = entry.created_at

    async def step(self, name: str, *arguments: Any) -> None:
        """One step; none shortens the time that is left to what it leaves in place."""
        self.turn += 1
        before = {} if name.startswith("expire") else self._deadlines()
        await getattr(self, name)(*arguments)
        after = self._deadlines()
        # A write may empty a list and begin it anew for an entry that lives less long.
        kept = {each for each in after if keys.parse(each).kind not in LISTS}
        self._check_deadlines({each: ends for each, ends in before.items() if each in kept})

    # --- operations ----------------------------------------------------------------------
    async def store(
        self, volk: str, session: str, classification: MemoryClassification, tags: tuple[str, ...]
    ) -> None:
        wanted = View(
            key="",
            content=self.text(),
            owner=volk,
            session=self.session(session),
            tags=tags,
            classification=classification,
        )
        await self._store(wanted, session, None)

    async def store_as(self, volk: str, session: str, name: str, content: int) -> None:
        wanted = View(
            key=f"{name}-{self.number:05}",
            content=f"{WORDS[content]} of {name}",
            owner=volk,
            session=self.session(session),
        )
        await self._store(wanted, session, wanted.key)

    async def _store(self, wanted: View, session: str, key: str | None) -> None:
        stored: list[MemoryEntry] = []

        async def store() -> MemoryEntry:
            entry = await self.as_(wanted.owner, session).store(
                wanted.content,
                key=key,
                tags=list(wanted.tags),
                classification=wanted.classification,
            )
            stored.append(entry)
            return entry

        said = await outcome(store())
        named = replace(wanted, key=stored[0].key if stored else wanted.key)
        assert said == self.model.store(named, explicit=key is not None)
        for entry in stored:
            self._know(entry.key, entry)

    async def update(
        self,
        number: int,
        actor: str | None,
        tags: tuple[str, ...] | None,
        classification: MemoryClassification | None,
    ) -> None:
        key = self.pick(number)
        volk = self.actor(actor, key)
        content = self.text() if number % 2 else None
        said = await outcome(
            self.as_(volk, SESSIONS[number % len(SESSIONS)]).update(
                key,
                content=content,
                tags=None if tags is None else list(tags),
                classification=classification,
            )
        )
        assert said == self.model.update(
            volk, key, content=content, tags=tags, classification=classification
        )

    async def delete(self, number: int, actor: str | None) -> None:
        key = self.pick(number)
        volk = self.actor(actor, key)
        assert await outcome(self.as_(volk).delete(key)) == self.model.delete(volk, key)

    async def share(self, number: int, actor: str | None, target: str) -> None:
        key = self.pick(number)
        volk = self.actor(actor, key)
        said = await outcome(self.as_(volk).share(key, target))
        assert said == self.model.share(volk, key, target)

    async def unshare(self, number: int, actor: str | None, target: str) -> None:
        key = self.pick(number)
        volk = self.actor(actor, key)
        said = await outcome(self.as_(volk).unshare(key, target))
        assert said == self.model.unshare(volk, key, target)

    async def delegate(self, volk: str, to: str, minutes: int | None) -> None:
        ends = None if minutes is None else self.clock() + timedelta(minutes=minutes)
        said = await outcome(self.as_(volk).delegate(to, expires_at=ends))
        assert (said if isinstance(said, type) else True) == self.model.delegate(volk, to, ends)

    async def revoke(self, volk: str, to: str) -> None:
        assert await outcome(self.as_(volk).revoke(to)) == self.model.revoke(volk, to)

    async def keep_summary(self, volk: str, session: str) -> None:
        """The model is told what it was made from, having checked that all of it is readable."""
        if volk not in ROLES:
            return
        entry = await outcome(self.as_(volk, session).store_summary(self.session(session)))
        if isinstance(entry, View) and entry.key not in self.model.live:
            record = (await self.hot.read([entry.key]))[entry.key].record
            assert record is not None
            readable = {each.key for each in self.model.readable(volk, self.clock.now)}
            assert set(record.sources) <= readable - self.model.sources.keys()
            assert entry.version == self.model.versions.get(entry.key, 0) + 1
            self.model.keep_summary(entry, record.sources, record.created_at)
            if entry.key not in self.keys:
                self.keys.append(entry.key)

    async def advance(self, minutes: int) -> None:
        self.clock.now += timedelta(minutes=minutes)

    async def promote(self, number: int, volk: str, session: str) -> None:
        key = self.pick(number)
        record = (await self.cold.get([key])).get(key)
        if record is not None:
            vectors = await self.cold.vectors([key])
            self.read_earlier += [(record, vector) for vector in vectors.values()]
        before = self._deadlines()
        await outcome(self.as_(volk, session).promote(key))
        self._check_deadlines(before)

    async def promote_late(self, number: int, session: str) -> None:
        """A search that read the graph some steps ago promotes what it found then.

        The markers it relies on last ten minutes, longer than an operation may take.
        """
        if self.read_earlier:
            record, vector = self.read_earlier[number % len(self.read_earlier)]
            await self.hot.promote(self.session(session), record, vector)

    async def close(self, session: str, worked: bool) -> None:
        if worked:
            await self.work(EVERYTHING)
        await self.engine.close_session(self.session(session))

    async def move_own(self, volk: str, session: str) -> None:
        await outcome(self.as_(volk).migrate_to_cold(self.session(session)))

    # --- the worker, by hand -------------------------------------------------------------
    async def work(self, count: int) -> None:
        await self._work(count, "confirmed")

    async def die(self, count: int, at: str) -> None:
        """A worker that gets so far."""
        await self._work(count, at)

    async def _work(self, count: int, until: str) -> None:
        worker = self.engine._wired.worker
        batch = OutboxBatch.of(await self._take(count))
        if until == "taken" or not batch.records:
            return
        vectors = await worker._embed(batch)
        if until == "embedded":
            return
        self.writes += await batch.writes(self.engine.parts.analyzer, vectors)
        assert await worker._apply(batch, vectors) == {}
        if until == "confirmed":
            await self.hot.confirm(batch.confirmations({}))

    async def _take(self, count: int) -> list[OutboxRecord]:
        consumer = f"w{self.turn % 2}"
        taken = await self.hot.take_over(consumer, idle_seconds=0, count=count)
        taken += await self.hot.take(consumer, count=count, block_seconds=0)
        records = [each for each in taken if isinstance(each, OutboxRecord)]
        assert len(records) == len(taken)
        for each in records:
            [(_, fields)] = self.raw.xrange(keys.OUTBOX, each.outbox_id, each.outbox_id)
            if fields not in self.records:
                self.records.append(fields)
        return records

    async def bury(self, count: int) -> None:
        for each in await self._take(count):
            await self.hot.bury(each.outbox_id, "refused")

    async def revive(self) -> None:
        await self.hot.revive()

    async def replay(self, number: int) -> None:
        """An old record comes once more, out of order."""
        if self.records:
            self.raw.xadd(keys.OUTBOX, self.records[number % len(self.records)])

    async def replay_write(self, number: int) -> None:
        """A late try of an old write."""
        if self.writes:
            assert await self.cold.apply([self.writes[number % len(self.writes)]]) == {}

    # --- time and upkeep -----------------------------------------------------------------
    def _expiring(self) -> list[str]:
        """Everything that has a TTL, in an order that does not depend on generated ids."""
        order = {key: f"{place:03}" for place, key in enumerate(self.keys)}
        names = [n for n in self.raw.scan_iter(f"{keys.PREFIX}*") if self.raw.pttl(n) > 0]

        def place(name: str) -> tuple[str, list[str]]:
            parsed = keys.parse(name)
            return parsed.kind, [order.get(part, part) for part in parsed.parts]

        return sorted(names, key=place)

    async def expire(self, number: int) -> None:
        """The TTL of something runs out."""
        self.read_earlier.clear()
        names = self._expiring()
        if names:
            self.raw.delete(names[number % len(names)])

    async def expire_all(self) -> None:
        """A week passes in which nobody calls."""
        self.read_earlier.clear()
        names = self._expiring()
        if names:
            self.raw.delete(*names)

    async def sweep(self) -> None:
        await self.hot.sweep()

    async def upkeep(self) -> None:
        """Every periodic job once."""
        await self.engine.parts.delegations.restore()
        for job in self.engine._wired.upkeep._jobs:
            await job._step()

    # --- TTLs ----------------------------------------------------------------------------
    def _deadlines(self) -> dict[str, int]:
        """When entries, replicas, vectors and what lists them run out, in ms since 1970."""
        names = [
            n
            for n in self.raw.scan_iter(f"{keys.PREFIX}*", count=1000)
            if keys.parse(n).kind in LASTING
        ]
        pipe = self.raw.pipeline(transaction=False)
        for name in names:
            pipe.pexpiretime(name)
        return dict(zip(names, pipe.execute(), strict=True))

    def _check_deadlines(self, before: dict[str, int]) -> None:
        after = self._deadlines()
        for name, deadline in before.items():
            now = after.get(name, 0)
            assert now == -1 or now >= deadline, f"the TTL of {name} was shortened"

    # --- comparing -----------------------------------------------------------------------
    async def check_kept(self) -> None:
        """Each live entry is in a tier at its newest version; nothing deleted shows in hot."""
        known = [key for key in self.keys if key in self.model.versions]
        states = await self.hot.read(known) if known else {}
        held = await self.cold.get(known) if known else {}
        for key in known:
            state, version = states[key], self.model.versions[key]
            in_hot = state.record is not None and state.record.version == version
            in_cold = key in held and held[key].version == version
            if key in self.model.live:
                assert state.state is not KeyState.DELETED, key
                assert in_hot or in_cold, (key, state.state, state.version, version)
            else:
                assert state.record is None, (key, state.state)
                assert state.state is KeyState.DELETED or key not in held, key

    async def look(self, volk: str, number: int) -> None:
        """What one Volk sees of one key, in find, in search and in a summary."""
        before = self._deadlines()
        await self.check_key(volk, self.pick(number))
        await self.check_volk(volk)
        self._check_deadlines(before)

    async def check_key(self, volk: str, key: str) -> None:
        said = await outcome(self.as_(volk).retrieve(key))
        if key not in self.model.live:
            assert said is None, (volk, key)
        elif self.model.may_read(volk, key, self.clock.now):
            assert said == self.model.live[key], volk
        else:
            assert isinstance(said, type), (volk, key, said)

    async def check_volk(self, volk: str) -> None:
        scope = MemoryScope(project_id=self.project)
        expected = self.model.readable(volk, self.clock.now)
        found = await self.as_(volk).find(scope=scope, limit=EVERYTHING)
        assert [View.of(entry) for entry in found] == expected, f"find of {volk}"
        hits = await self.as_(volk, SESSIONS[self.turn % len(SESSIONS)]).search(
            "falcon at dawn", scope=scope, limit=EVERYTHING, min_similarity=0
        )
        await self.engine._wired.favours.join()
        by_key = sorted(expected, key=lambda view: view.key)
        assert sorted((View.of(e) for e in hits), key=lambda view: view.key) == by_key, volk
        for session in SESSIONS:
            await self._check_summary(volk, session, expected)

    async def _check_summary(self, volk: str, session: str, expected: list[View]) -> None:
        readable = {
            view.key
            for view in expected
            if view.session == self.session(session) and view.key not in self.model.sources
        }
        summary = await self.as_(volk).summarize(self.session(session), max_tokens=100_000)
        assert set(summary.source_keys) == readable, f"summary of {session} for {volk}"

    async def find_some(
        self, volk: str, session: str, tags: tuple[str, ...], limit: int, match_all: bool
    ) -> None:
        """Filters combine, and hold before the cut."""
        times = sorted(self.model.created.values())
        scope = MemoryScope(
            project_id=self.project,
            session_id=self.session(session),
            date_from=times[len(times) // 4] if times else None,
        )
        combine = all if match_all else any

        def qualifies(view: View) -> bool:
            tagged = not tags or combine(tag in view.tags for tag in tags)
            begins = scope.date_from or self.model.created[view.key]
            in_scope = view.session == scope.session_id and self.model.created[view.key] >= begins
            return tagged and in_scope

        expected = [v for v in self.model.readable(volk, self.clock.now) if qualifies(v)]
        found = await self.as_(volk).find(
            tags=list(tags), match="all" if match_all else "any", scope=scope, limit=limit
        )
        assert [View.of(entry) for entry in found] == expected[:limit]
        if not tags:
            hits = await self.as_(volk).search("violin", scope=scope, limit=limit, min_similarity=0)
            await self.engine._wired.favours.join()
            assert len(hits) == min(limit, len(expected))
            assert {hit.key for hit in hits} <= {view.key for view in expected}

    async def check_all(self) -> None:
        for volk in VOLKS:
            await asyncio.gather(*(self.check_key(volk, key) for key in self.keys))
            await self.check_volk(volk)

    async def check_related(self) -> None:
        """With everything in cold: every readable memory of the project is one step away."""
        for volk in VOLKS:
            expected = {view.key: view for view in self.model.readable(volk, self.clock.now)}
            for key in self.keys[:3]:
                said = await self.as_(volk).related(key, limit=EVERYTHING)
                near = {item.entry.key: View.of(item.entry) for item in said}
                others = {k: v for k, v in expected.items() if k != key}
                assert near == (others if key in expected else {}), (volk, key)

    async def check_audit(self) -> None:
        """Each change stands in the trail once, in order."""
        operations = {"store", "update", "delete", "share", "unshare"}
        for key, written in self.model.written.items():
            trail = await self.as_("OPS:ADMIN").audit_trail(key, limit=1000)
            told = [
                (record.operation, record.volk_id)
                for record in trail
                if record.operation in operations
                and record.outcome == "allowed"
                and record.detail not in {"unchanged", "not found"}
            ]
            assert told == written, key

    # --- the end of a history ------------------------------------------------------------
    async def settle(self) -> None:
        """Write everything behind, close every session, tidy up."""
        await self.hot.revive()
        while await self.hot.outbox_length():
            await self.work(EVERYTHING)
        for session in SESSIONS:
            await self.engine.close_session(self.session(session))
        await self.hot.sweep()
        await self.engine.parts.audit.flush()
        await self.upkeep()

    async def again(self) -> None:
        """Every background step once more, in an order that makes no sense."""
        shuffled = random.Random(self.number)
        for record in shuffled.sample(self.records, len(self.records)):
            self.raw.xadd(keys.OUTBOX, record)
        for write in shuffled.sample(self.writes, len(self.writes)):
            assert await self.cold.apply([write]) == {}
        while await self.hot.outbox_length():
            await self.work(7)
        for _ in self.engines:
            self.turn += 1
            await self.upkeep()
        for session in SESSIONS:
            await self.engine.close_session(self.session(session))
        await self.hot.sweep()

    async def end(self) -> None:
        """What a history leaves: the model in cold, markers in hot, and nothing else."""
        for volk, to in list(self.model.delegations):
            await self.revoke(volk, to)
        await self.settle()

    def left_in_hot(self) -> set[str]:
        own = {*self.keys, *(self.session(each) for each in SESSIONS)}
        allowed = {keys.NameKind.POINTER, keys.NameKind.POSITIONS, keys.NameKind.OTHER}
        return {
            name
            for name in self.raw.scan_iter(f"{keys.PREFIX}*")
            if keys.parse(name).kind not in allowed and own & set(keys.parse(name).parts)
        }
