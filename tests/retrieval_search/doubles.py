"""A hot and a cold tier in dictionaries, for tests that need thousands of rounds or a race."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np

from orchestrata_memory.cold.base import (
    ColdCandidates,
    ColdDocument,
    ColdHit,
    ColdQuery,
    ColdStore,
    FindOrder,
    Readable,
    TermStatistics,
)
from orchestrata_memory.errors import COLD_TIER, HOT_TIER, MemoryUnavailableError
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.hot.base import ChangeBatch, HotState, HotStore, StoredVector
from orchestrata_memory.models import (
    KeyState,
    MemoryClassification,
    MemoryRecord,
    MemoryScope,
)
from orchestrata_memory.retrieval.analysis import TextAnalyzer

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANALYZER = TextAnalyzer("english")


def record(key: str, content: str, **fields: Any) -> MemoryRecord:
    """A record of Volk A in session s, project p, created `minute` minutes after the start."""
    created = START + timedelta(minutes=fields.pop("minute", 0))
    values: dict[str, Any] = {
        "volk_id": "A",
        "session_id": "s",
        "project_id": "p",
        "created_at": created,
        "updated_at": created,
        "content_hash": hashlib.sha256(content.encode()).hexdigest(),
    }
    return MemoryRecord(key=key, content=content, **(values | fields))


def readable_by_rules(record: MemoryRecord, volk: str, grantors: Sequence[str] = ()) -> bool:
    return (
        record.volk_id == volk
        or record.classification is not MemoryClassification.PRIVATE
        or not {volk, *grantors}.isdisjoint(record.shared_with)
    )


def passes(record: MemoryRecord, scope: MemoryScope) -> bool:
    wanted = {
        name: value
        for name in ("session_id", "task_id", "volk_id", "project_id", "portfolio_id")
        if (value := getattr(scope, name)) is not None
    }
    return (
        all(getattr(record, name) == value for name, value in wanted.items())
        and (scope.date_from is None or record.created_at >= scope.date_from)
        and (scope.date_to is None or record.created_at <= scope.date_to)
    )


def chosen(
    records: Sequence[MemoryRecord], scope: MemoryScope, readable: Readable | None
) -> list[MemoryRecord]:
    return [
        one
        for one in records
        if passes(one, scope)
        and (readable is None or readable_by_rules(one, readable.volk_id, readable.grantors))
    ]


class HotDouble:
    """States, vectors, census and change log; `down` makes every call fail."""

    def __init__(self) -> None:
        self.states: dict[str, HotState] = {}
        self.kept: dict[str, StoredVector] = {}
        self.counts: dict[str, int] = {}
        self.log: list[str] = []
        self.first = 0
        self.down = False
        self.reads = 0
        self.delegations_changed = False
        self.before_read: Callable[[], Awaitable[None]] | None = None

    @property
    def port(self) -> HotStore:
        return cast("HotStore", self)

    # --- what happens in hot ---
    def put(self, new: MemoryRecord, *, expires_at: datetime | None = None) -> MemoryRecord:
        if not self._lives(new.key):
            self._count(new, 1)
        new = new.changed(version=max(new.version, self._version(new.key) + 1))
        self.states[new.key] = HotState(
            state=KeyState.LIVE, version=new.version, record=new, expires_at=expires_at
        )
        self.kept.pop(new.key, None)
        self.log.append(new.key)
        return new

    def delete(self, key: str, owned: MemoryRecord) -> None:
        self._count(owned, -1)
        version = max(self._version(key), owned.version) + 1
        self.states[key] = HotState(state=KeyState.DELETED, version=version)
        self.kept.pop(key, None)
        self.log.append(key)

    def move_out(self, key: str) -> MemoryRecord:
        gone = self.states[key].record
        assert gone is not None
        self.states[key] = HotState(state=KeyState.COLD, version=gone.version)
        self.kept.pop(key, None)
        self.log.append(key)
        return gone

    def promote(self, copy: MemoryRecord) -> None:
        self.states[copy.key] = HotState(
            state=KeyState.COLD, version=copy.version, record=copy, replica=True
        )
        self.log.append(copy.key)

    def forget(self, key: str, *, silently: bool = False) -> None:
        self.states.pop(key)
        self.kept.pop(key, None)
        if not silently:
            self.log.append(key)

    def embed(self, key: str, vector: StoredVector) -> None:
        self.kept[key] = vector
        self.log.append(key)

    def count_cold(self, cold: MemoryRecord) -> None:
        """A memory that only cold holds is counted too."""
        self._count(cold, 1)

    def trim(self) -> None:
        self.first = len(self.log)

    # --- the port ---
    async def changes_since(
        self, cursor: str | None, *, counted: Sequence[str] = ()
    ) -> ChangeBatch:
        self._check()
        end = str(len(self.log))
        if cursor is None:
            return ChangeBatch(cursor=end, keys=(), complete=True, counts=self._counts(counted))
        keys = tuple(dict.fromkeys(self.log[int(cursor) :]))
        changed, self.delegations_changed = self.delegations_changed, False
        return ChangeBatch(
            cursor=end,
            keys=keys,
            complete=int(cursor) >= self.first,
            delegations_changed=changed,
            counts=self._counts(counted),
        )

    async def read(self, keys: Sequence[str]) -> dict[str, HotState]:
        self._check()
        self.reads += 1
        if self.before_read is not None:
            await self.before_read()
        unknown = HotState(state=KeyState.UNKNOWN)
        return {key: self.states.get(key, unknown) for key in keys}

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]:
        self._check()
        return {key: self.kept[key] for key in keys if key in self.kept}

    async def scan(self) -> AsyncIterator[Sequence[str]]:
        self._check()
        keys = list(self.states)
        for start in range(0, len(keys), 7):
            yield keys[start : start + 7]

    async def census(self, names: Sequence[str]) -> dict[str, int | None]:
        self._check()
        return self._counts(names)

    def _counts(self, names: Sequence[str]) -> dict[str, int | None]:
        return {name: self.counts.get(name, 0) for name in names}

    def _check(self) -> None:
        if self.down:
            raise MemoryUnavailableError(HOT_TIER, "down for the test")

    def _version(self, key: str) -> int:
        state = self.states.get(key)
        return 0 if state is None else state.version

    def _lives(self, key: str) -> bool:
        state = self.states.get(key)
        return state is not None and state.state in {KeyState.LIVE, KeyState.COLD}

    def _count(self, of: MemoryRecord, step: int) -> None:
        for name in ("all", f"session:{of.session_id}", f"project:{of.project_id}"):
            self.counts[name] = self.counts.get(name, 0) + step


@dataclass
class ColdDouble:
    """Live records with vectors, answered by looking at each one."""

    records: dict[str, MemoryRecord] = field(default_factory=dict)
    kept: dict[str, StoredVector] = field(default_factory=dict)
    down: bool = False
    asked: list[str] = field(default_factory=list)
    excluded: frozenset[str] = frozenset()

    @property
    def port(self) -> ColdStore:
        return cast("ColdStore", self)

    def put(self, new: MemoryRecord, vector: StoredVector | None = None) -> None:
        self.records[new.key] = new
        if vector is not None:
            self.kept[new.key] = vector

    async def candidates(self, query: ColdQuery) -> ColdCandidates:
        self._note("candidates")
        self.excluded = query.exclude
        pool = [
            self._hit(one, query.vector)
            for one in chosen(list(self.records.values()), query.scope, query.readable)
            if one.key not in query.exclude
        ]
        asked = set(query.terms)
        words = sorted(
            (hit for hit in pool if asked & set(hit.document.terms)),
            key=lambda hit: -len(asked & set(hit.document.terms)),
        )
        near = sorted(
            (hit for hit in pool if hit.cosine is not None), key=lambda hit: -(hit.cosine or 0)
        )
        best = {hit.record.key: hit for hit in (*words[: query.count], *near[: query.count])}
        return ColdCandidates(
            hits=tuple(best.values()),
            keyword_exhausted=len(words) <= query.count,
            vector_exhausted=len(near) <= query.count,
        )

    async def statistics(
        self, terms: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> TermStatistics:
        self._note("statistics")
        pool = chosen(list(self.records.values()), scope, readable)
        return naive_statistics(terms, [one for one in pool if not one.sources])

    async def speakers(
        self, names: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> frozenset[str]:
        self._note("speakers")
        folded = {name.casefold() for name in names}
        pool = chosen(list(self.records.values()), scope, readable)
        return frozenset(one.speaker for one in pool if one.speaker.casefold() in folded)

    async def neighbours(self, slots: Sequence[tuple[str, str, int]], vector: Any) -> list[ColdHit]:
        self._note("neighbours")
        wanted = set(slots)
        return [
            self._hit(one, vector)
            for one in self.records.values()
            if (one.session_id, one.volk_id, one.position) in wanted
        ]

    async def get(self, keys: Sequence[str]) -> dict[str, MemoryRecord]:
        self._note("get")
        return {key: self.records[key] for key in keys if key in self.records}

    async def find(
        self,
        scope: MemoryScope,
        *,
        tags: Sequence[str] = (),
        match_all: bool = True,
        readable: Readable | None,
        order: FindOrder = FindOrder.NEWEST,
        limit: int,
        offset: int = 0,
        include_summaries: bool = False,
    ) -> list[MemoryRecord]:
        self._note("find")
        pool = [
            one
            for one in chosen(list(self.records.values()), scope, readable)
            if has_tags(one, tags, match_all=match_all) and (include_summaries or not one.sources)
        ]
        pool.sort(key=lambda one: one.key)
        pool.sort(key=lambda one: one.created_at, reverse=order is FindOrder.NEWEST)
        return pool[offset : offset + limit]

    def _note(self, what: str) -> None:
        if self.down:
            raise MemoryUnavailableError(COLD_TIER, "down for the test")
        self.asked.append(what)

    def _hit(self, one: MemoryRecord, vector: Any) -> ColdHit:
        kept = self.kept.get(one.key)
        document = ColdDocument.of(
            one,
            ANALYZER.terms(one.content),
            model=None if kept is None else kept.model,
        )
        cosine = None if kept is None or vector is None else float(kept.vector @ vector)
        return ColdHit(document=document, cosine=cosine)


class RulesDouble:
    """The rules as shipped; `denied` keys are refused whatever they say, `extra` are allowed."""

    def __init__(self, *, prefilter: bool = True) -> None:
        self.prefilter = prefilter
        self.grantors: dict[str, tuple[str, ...]] = {}
        self.denied: set[str] = set()
        self.extra: set[tuple[str, str]] = set()
        self.asked = 0

    @property
    def port(self) -> Governance:
        return cast("Governance", self)

    async def can_read_many(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[bool]:
        self.asked += len(records)
        return [
            one.key not in self.denied
            and (
                (volk_id, one.key) in self.extra
                or readable_by_rules(one, volk_id, self.grantors.get(volk_id, ()))
            )
            for one in records
        ]

    async def readable(self, volk_id: str) -> Readable | None:
        if not self.prefilter:
            return None
        grantors = self.grantors.get(volk_id, ())
        return Readable(volk_id=volk_id, grantors=grantors, exact=not self.denied)


def has_tags(one: MemoryRecord, tags: Sequence[str], *, match_all: bool) -> bool:
    held = [tag in one.tags for tag in tags]
    return not tags or (all(held) if match_all else any(held))


def naive_statistics(terms: Sequence[str], pool: Sequence[MemoryRecord]) -> TermStatistics:
    words = [ANALYZER.terms(one.content) for one in pool]
    return TermStatistics(
        documents=len(pool),
        average_length=float(np.mean([len(each) for each in words])) if words else 0.0,
        frequencies={term: sum(term in each for each in words) for term in terms},
    )


def vector_of(
    numbers: Mapping[int, float] | Sequence[float], dimension: int = 8
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A unit vector."""
    raw = np.zeros(dimension, np.float32)
    for place, value in numbers.items() if isinstance(numbers, Mapping) else enumerate(numbers):
        raw[place] = value
    return (raw / np.linalg.norm(raw)).astype(np.float32)
