"""``bench latency``: how long each operation takes, through the public interface.

Rules, audit and the write-behind worker are on. Keys are distinct, queries are fresh (no text is
asked twice), cold reads go to memories whose session is closed, from a session that is closed too
and thus promotes nothing, so neither a cache nor a replica answers.

Traces: REQ-010-051, REQ-010-052, REQ-010-053, REQ-010-054, REQ-010-055
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from orchestrata_memory.bench import corpus
from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.limits import ROWS, STORES_PER_SECOND
from orchestrata_memory.bench.metrics import Timing
from orchestrata_memory.bench.models import models_in_use
from orchestrata_memory.bench.tidy import forget
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.ingest.writers import WRITERS, chunks, patiently, write_streams
from orchestrata_memory.models import MemoryContext, MemoryScope, memory_context

T = TypeVar("T")

_SETTLE_SECONDS = 900.0
_SUMMARY_TOKENS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured.

    Attributes:
        samples: Measurements of each row.
        hot_entries: Memories in the session that is searched hot.
        cold_entries: Memories in the graph that are searched cold.
        summary_entries: Memories of the session that is summarized.
    """

    samples: int = 1000
    hot_entries: int = 1000
    cold_entries: int = 10_000
    summary_entries: int = 200

    @property
    def texts(self) -> int:
        """How many texts all rows need."""
        return self.cold_entries + self.hot_entries + self.summary_entries + 2 * self.samples + 1


QUICK = Sizes(samples=50, hot_entries=200, cold_entries=500, summary_entries=100)


@dataclass(slots=True, kw_only=True)
class LatencyReport:
    """What was measured.

    Attributes:
        rows: Row name to its figures.
        stores_per_s: Acknowledged stores a second, `writers` at once.
        cold_lag_s: How long after the last of them cold had all.
    """

    backend: str
    models: dict[str, object] = field(default_factory=dict)
    rows: dict[str, Timing] = field(default_factory=dict)
    stores_per_s: float = 0.0
    sustained_stores: int = 0
    cold_lag_s: float = 0.0

    def document(self) -> dict[str, object]:
        """The figures for machines, flat, times in milliseconds."""
        flat: dict[str, object] = {"backend": self.backend, "models": self.models}
        for name, timing in self.rows.items():
            flat[f"{name}_samples"] = timing.samples
            for part in ("p50_ms", "p95_ms", "p99_ms"):
                flat[f"{name}_{part}"] = round(getattr(timing, part), 3)
        flat["stores_per_s"] = round(self.stores_per_s, 1)
        flat["sustained_stores"] = self.sustained_stores
        flat["cold_lag_s"] = round(self.cold_lag_s, 2)
        flat["misses"] = self.misses()
        flat["short_of_ours"] = self.short_of_ours()
        return flat

    def misses(self) -> list[str]:
        """Rows whose P95 is over the requirement's limit."""
        return [
            name
            for name, limit in ROWS.items()
            if limit.required_ms is not None
            and name in self.rows
            and self.rows[name].p95_ms > limit.required_ms
        ]

    def short_of_ours(self) -> list[str]:
        """Rows over the project's own aim."""
        slow = [
            name
            for name, limit in ROWS.items()
            if limit.ours_ms is not None
            and name in self.rows
            and self.rows[name].p95_ms > limit.ours_ms
        ]
        return slow + (["stores_per_s"] if self.stores_per_s < STORES_PER_SECOND else [])


async def run_latency(
    environment: Environment, sizes: Sizes, reporter: Reporter, *, keep: bool = False
) -> LatencyReport:
    """Measure every row.

    Args:
        environment: Where.
        sizes: How much.
        reporter: Shows progress.
        keep: Leave what was stored on servers that are not temporary.
    """
    report = LatencyReport(backend=environment.backend)
    bench = _Bench(environment, sizes, reporter, report)
    try:
        await bench.round_trips()
        await bench.load_cold()
        await bench.stores()
        await bench.hot_rows()
        await bench.cold_rows()
        await bench.summaries()
        report.models = await models_in_use(environment.engine.parts.embedder)
    finally:
        if not keep and not environment.temporary:
            with memory_context(bench.caller("cleanup")):
                await forget(environment.engine, bench.keys, reporter)
    return report


class _Bench:
    def __init__(
        self, environment: Environment, sizes: Sizes, reporter: Reporter, report: LatencyReport
    ) -> None:
        self._environment = environment
        self._engine = environment.engine
        self._sizes = sizes
        self._reporter = reporter
        self._report = report
        self._run = uuid4().hex[:8]
        groups = corpus.group_count(sizes.texts)
        texts = corpus.samples(0, sizes.texts, groups=groups)
        self._texts = iter([sample.text for sample in texts])
        self._queries = _fresh_queries(2 * sizes.samples, groups, self._run)
        self._focuses = _fresh_queries(sizes.samples, groups, f"{self._run}-focus")
        self._cold_keys: list[str] = []
        self.keys: list[str] = []

    def caller(self, session: str, *, focus: str | None = None) -> MemoryContext:
        """The bench's Volk in a session of this run."""
        return self._environment.caller(
            f"bench-{self._run}-{session}", project_id=f"bench-{self._run}-{_project(session)}",
            focus=focus,
        )  # fmt: skip

    async def round_trips(self) -> None:
        """The servers without the engine."""
        count, raw = self._sizes.samples, self._environment.raw
        with self._reporter.stage("raw round trips", 3) as advance:
            self._report.rows["redis_roundtrip"] = Timing.of(await raw.redis_round_trips(count))
            advance(1)
            self._report.rows["redis_write"] = Timing.of(await raw.redis_writes(count))
            advance(1)
            self._report.rows["graph_roundtrip"] = Timing.of(await raw.graph_round_trips(count))
            advance(1)

    async def load_cold(self) -> None:
        """Fill the graph: the sustained row, and what the cold rows read."""
        texts = [next(self._texts) for _ in range(self._sizes.cold_entries)]
        streams = [
            [(f"cold-{number}", text) for text in chunk]
            for number, chunk in enumerate(chunks(texts, -(-len(texts) // WRITERS)))
        ]

        async def write(item: tuple[str, str]) -> None:
            session, text = item
            with memory_context(self.caller(session)):
                self._cold_keys.append(await self._store(text))

        with self._reporter.stage(f"storing, {WRITERS} writers", len(texts)) as advance:
            started = time.perf_counter()
            await write_streams(streams, write, done=advance)
            acknowledged = time.perf_counter()
        self._report.sustained_stores = len(texts)
        self._report.stores_per_s = len(texts) / (acknowledged - started)
        await self._settle(len(texts))
        self._report.cold_lag_s = time.perf_counter() - acknowledged
        with self._reporter.stage("closing their sessions", len(streams)) as advance:
            for stream in streams:
                await self._engine.close_session(self.caller(stream[0][0]).session_id)
                advance(1)

    async def stores(self) -> None:
        """Stores one after the other, with generated and with explicit keys."""
        count = self._sizes.samples
        with memory_context(self.caller("stores")):
            texts = [next(self._texts) for _ in range(count)]
            await self._measure("hot_store", texts, self._store)
            texts = [next(self._texts) for _ in range(count)]

            async def store_explicit(text: str) -> None:
                key = f"bench-{self._run}-{len(self.keys)}"
                await patiently(lambda: self._engine.store(text, key=key))
                self.keys.append(key)

            await self._measure("hot_store_explicit_key", texts, store_explicit)
        await self._settle(2 * count)

    async def hot_rows(self) -> None:
        """Reads and searches in an open session."""
        count = self._sizes.hot_entries
        caller = self.caller("hot")
        with memory_context(caller):
            with self._reporter.stage("filling the hot session", count) as advance:
                keys = []
                for _ in range(count):
                    keys.append(await self._store(next(self._texts)))
                    advance(1)
            await self._settle(count)
            scope = MemoryScope(session_id=caller.session_id)
            await self._measure("hot_retrieve", self._picked(keys), self._engine.retrieve)
            await self._measure("hot_search", self._asked(), self._search_in(scope))

    async def cold_rows(self) -> None:
        """Reads and searches of memories that only the graph holds."""
        caller = self.caller("cold-asker")
        await self._engine.close_session(caller.session_id)
        with memory_context(caller):
            scope = MemoryScope(project_id=caller.project_id)
            keys = self._picked(self._cold_keys)
            await self._measure("cold_retrieve", keys, self._engine.retrieve)
            await self._measure("cold_search", self._asked(), self._search_in(scope))

    async def summaries(self) -> None:
        """Summaries of an open session, each for another focus."""
        session = self.caller("summary").session_id
        count = self._sizes.summary_entries
        with memory_context(self.caller("summary")):
            with self._reporter.stage("filling the session to summarize", count) as advance:
                for _ in range(count):
                    await self._store(next(self._texts))
                    advance(1)
            await self._settle(count)

        async def summarize(focus: str) -> None:
            with memory_context(self.caller("summary", focus=focus)):
                await self._engine.summarize(session, max_tokens=_SUMMARY_TOKENS)

        focuses = [next(self._focuses) for _ in range(self._sizes.samples)]
        await self._measure("summarize", focuses, summarize)

    async def _store(self, text: str) -> str:
        entry = await patiently(lambda: self._engine.store(text))
        self.keys.append(entry.key)
        return entry.key

    def _search_in(self, scope: MemoryScope) -> Callable[[str], Awaitable[object]]:
        async def search(query: str) -> None:
            await self._engine.search(query, scope=scope)

        return search

    def _asked(self) -> list[str]:
        return [next(self._queries) for _ in range(self._sizes.samples)]

    def _picked(self, keys: Sequence[str]) -> list[str]:
        """As many keys as samples, each once as far as they reach."""
        shuffled = list(keys)
        random.Random(self._run).shuffle(shuffled)  # noqa: S311 - a shuffle, not a secret
        repeats = -(-self._sizes.samples // len(shuffled))
        return (shuffled * repeats)[: self._sizes.samples]

    async def _measure(
        self, name: str, items: Sequence[T], operate: Callable[[T], Awaitable[object]]
    ) -> None:
        taken = []
        with self._reporter.stage(name.replace("_", " "), len(items)) as advance:
            for item in items:
                started = time.perf_counter()
                await operate(item)
                taken.append(time.perf_counter() - started)
                advance(1)
        self._report.rows[name] = Timing.of(taken)

    async def _settle(self, entries: int) -> None:
        with self._reporter.stage("writing behind", entries) as advance:
            settled = await self._engine.settle(_SETTLE_SECONDS)
            advance(entries)
        if not settled:
            raise TimeoutError(f"cold did not take the entries within {_SETTLE_SECONDS:g} s")


def _project(session: str) -> str:
    return session.partition("-")[0]


def _fresh_queries(count: int, groups: int, run: str) -> Iterator[str]:
    """Questions that were never asked before."""
    asked = corpus.queries(min(count, 4 * groups), groups=groups, of=groups)
    for number, (_, query) in enumerate(asked):
        yield f"{query} ({run}, question {number})"
