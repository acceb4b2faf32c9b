"""``bench scale``: what becomes of speed, recall and memory as the store grows.

Generated texts in groups of ten known neighbours (see `corpus`) go through the public interface.
At every size the same things are measured. `recall_at_10` is the share of a group's texts among
the first ten of a search for it; `vector_recall_at_10` is the share of the ten nearest vectors,
by an exact scan, that the tier's own vector look-up finds, over everything and within one session.

Traces: REQ-010-040
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import psutil

from orchestrata_memory.bench import corpus
from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.metrics import Timing, fraction_at, mean
from orchestrata_memory.bench.models import models_in_use
from orchestrata_memory.bench.neighbours import vector_recall
from orchestrata_memory.bench.searching import Question, Reply, ask_all, timing_of
from orchestrata_memory.bench.tidy import forget
from orchestrata_memory.bench.tiers import Tier
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.ingest.writers import WRITERS, chunks, write_streams
from orchestrata_memory.models import MemoryContext, MemoryScope, memory_context

K = 10
_SECONDS_AN_ENTRY = 0.1
_SETTLE_SECONDS = 600.0
_MIB = 1 << 20
_LARGEST_SESSION = 1000
_SMALLEST_SESSION = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was measured at one size.

    Attributes:
        n: Memories in the store.
        stores_per_s: Acknowledged stores a second up to here, sixteen writers at once.
        lag_s: How long after the last store cold had all.
        index_s: How long the hot index then took to take it over, its approximate part included.
            Searches answer meanwhile, and compare more vectors one by one.
        process_mib: Resident memory of this process, model included.
        redis_mib: What Redis uses for its data.
    """

    n: int
    stores_per_s: float
    lag_s: float
    index_s: float
    timing: Timing
    recall_at_10: float
    vector_recall_at_10: float
    scoped_vector_recall_at_10: float
    process_mib: float
    redis_mib: float

    def document(self) -> dict[str, object]:
        """The figures for machines."""
        return {
            "n": self.n,
            "stores_per_s": round(self.stores_per_s, 1),
            "lag_s": round(self.lag_s, 2),
            "index_s": round(self.index_s, 2),
            "query_p50_ms": round(self.timing.p50_ms, 3),
            "query_p95_ms": round(self.timing.p95_ms, 3),
            "recall_at_10": round(self.recall_at_10, 4),
            "vector_recall_at_10": round(self.vector_recall_at_10, 4),
            "scoped_vector_recall_at_10": round(self.scoped_vector_recall_at_10, 4),
            "process_mib": round(self.process_mib, 1),
            "redis_mib": round(self.redis_mib, 1),
        }


@dataclass(slots=True, kw_only=True)
class ScaleReport:
    """The growth of one tier."""

    backend: str
    tier: Tier
    steps: list[Step] = field(default_factory=list)
    models: dict[str, object] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """The figures for machines; those of the largest size stand at the top too."""
        largest = self.steps[-1].document() if self.steps else {}
        return {
            "backend": self.backend,
            "tier": self.tier,
            **largest,
            "steps": [step.document() for step in self.steps],
            "models": self.models,
        }


async def run_scale(
    environment: Environment,
    sizes: Sequence[int],
    reporter: Reporter,
    *,
    tier: Tier = "hot",
    queries: int = 200,
    keep: bool = False,
) -> ScaleReport:
    """Grow one store through the sizes and measure at each.

    Args:
        environment: Where.
        sizes: Rising numbers of memories.
        reporter: Shows progress.
        tier: Hot leaves every session open, cold closes each.
        queries: Searches at each size; less where there are not so many groups.
        keep: Leave what was stored on servers that are not temporary.
    """
    report = ScaleReport(backend=environment.backend, tier=tier)
    growth = _Growth(environment, max(sizes), reporter, tier, queries)
    try:
        for size in sizes:
            report.steps.append(await growth.grow_to(size))
        report.models = await models_in_use(environment.engine.parts.embedder)
    finally:
        if not keep and not environment.temporary:
            with memory_context(growth.caller("asker")):
                keys = [key for keys in growth.groups.values() for key in keys]
                await forget(environment.engine, keys, reporter)
    return report


class _Growth:
    def __init__(
        self, environment: Environment, largest: int, reporter: Reporter, tier: Tier, queries: int
    ) -> None:
        self._environment = environment
        self._engine = environment.engine
        self._reporter = reporter
        self._tier = tier
        self._queries = queries
        self._group_count = corpus.group_count(largest)
        self._run = f"scale-{uuid4().hex[:8]}"
        self._size = 0
        self._sessions = 0
        self.groups: dict[int, list[str]] = {}

    def caller(self, session: str) -> MemoryContext:
        """The bench's Volk in a session of this run."""
        return self._environment.caller(f"{self._run}-{session}", project_id=self._run)

    async def grow_to(self, size: int) -> Step:
        """Store up to `size` memories and measure."""
        stores_per_s, lag_s, sessions = await self._fill(size)
        index_s = await self._catch_up()
        if self._tier == "cold":
            with self._reporter.stage("closing sessions", len(sessions)) as advance:
                for session in sessions:
                    await self._engine.close_session(self.caller(session).session_id)
                    advance(1)
        with memory_context(self.caller("asker")):
            replies = await ask_all(self._engine, self._questions(), self._reporter)
        process_mib = psutil.Process().memory_info().rss / _MIB
        whole, scoped = await self._vector_recalls(sessions[-1])
        return Step(
            n=size,
            stores_per_s=stores_per_s,
            lag_s=lag_s,
            index_s=index_s,
            timing=timing_of(replies),
            recall_at_10=self._recall(replies),
            vector_recall_at_10=whole,
            scoped_vector_recall_at_10=scoped,
            process_mib=process_mib,
            redis_mib=await self._environment.raw.redis_memory() / _MIB,
        )

    async def _catch_up(self) -> float:
        """Seconds until the hot index has taken over what was stored since the last search."""
        index = self._engine.parts.index
        started = time.perf_counter()
        with self._reporter.stage("indexing", 1) as advance:
            await index.sync()
            await index.settle()
            advance(1)
        return time.perf_counter() - started

    async def _fill(self, size: int) -> tuple[float, float, list[str]]:
        """Store what is missing; the rate, the lag of cold, and the new sessions."""
        texts = corpus.samples(self._size, size, groups=self._group_count)
        count = len(texts)
        width = min(max(-(-count // WRITERS), _SMALLEST_SESSION), _LARGEST_SESSION)
        streams, sessions = [], []
        for chunk in chunks(texts, width):
            sessions.append(f"session-{self._sessions}")
            streams.append([(sessions[-1], sample) for sample in chunk])
            self._sessions += 1
        with self._reporter.stage(f"storing up to {size:,}", count) as advance:
            started = time.perf_counter()
            await write_streams(streams, self._store, done=advance)
            acknowledged = time.perf_counter()
        with self._reporter.stage("writing behind", count) as advance:
            if not await self._engine.settle(_SETTLE_SECONDS + count * _SECONDS_AN_ENTRY):
                raise TimeoutError("cold did not take the texts in time")
            advance(count)
        self._size = size
        lag_s = time.perf_counter() - acknowledged
        return count / (acknowledged - started), lag_s, sessions

    async def _store(self, item: tuple[str, corpus.Sample]) -> None:
        session, sample = item
        with memory_context(self.caller(session)):
            entry = await self._engine.store(sample.text)
        self.groups.setdefault(sample.group, []).append(entry.key)

    def _questions(self) -> list[Question[int]]:
        """Questions about whole groups only."""
        whole = self._size // corpus.GROUP_SIZE
        scope = MemoryScope(project_id=self._run)
        asked = corpus.queries(
            min(self._queries, whole), groups=self._group_count, of=whole, seed=self._size
        )
        return [Question(text=text, scope=scope, about=group) for group, text in asked]

    def _recall(self, replies: Sequence[Reply[int]]) -> float:
        return mean(
            fraction_at(reply.keys, self.groups[reply.question.about], K) for reply in replies
        )

    async def _vector_recalls(self, session: str) -> tuple[float, float]:
        """Of the vector look-up, over the whole project and within its last session."""
        texts = [question.text for question in self._questions()]
        keys = [key for keys in self.groups.values() for key in keys]
        project = MemoryScope(project_id=self._run)
        within = MemoryScope(session_id=self.caller(session).session_id)
        with self._reporter.stage("comparing with an exact scan", 2) as advance:
            whole = await vector_recall(self._engine, self._tier, keys, texts, project)
            advance(1)
            scoped = await vector_recall(self._engine, self._tier, keys, texts, within)
            advance(1)
        return whole, scoped
