"""``bench ablation``: what each kind of evidence brings, and what it costs.

LoCoMo's questions as in ``bench locomo``, asked once with everything and once without each
ingredient of the ranking, over the same store.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.locomo import ConversationStore, LocomoReport, Quality, Target
from orchestrata_memory.bench.locomo_data import Conversation
from orchestrata_memory.bench.metrics import percentile
from orchestrata_memory.bench.searching import Question, Reply
from orchestrata_memory.bench.tidy import forget
from orchestrata_memory.bench.tiers import Tier
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.models import memory_context
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients

LIMIT = 10
NOTHING_LEFT_OUT = "everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What the answers were worth without one ingredient.

    Attributes:
        without: Its name, or `NOTHING_LEFT_OUT`.
        p50_ms: Milliseconds of a search at the median.
        cpu_p50_ms: Processor time of this process in it, which other load disturbs less.
    """

    without: str
    quality: Quality
    p50_ms: float
    cpu_p50_ms: float

    def document(self) -> dict[str, object]:
        """The figures for machines."""
        return {
            "without": self.without,
            **self.quality.document(),
            "query_p50_ms": round(self.p50_ms, 3),
            "cpu_p50_ms": round(self.cpu_p50_ms, 3),
        }


@dataclass(slots=True, kw_only=True)
class AblationReport:
    """The table."""

    backend: str
    tier: Tier
    rows: list[Ablation] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        """The figures for machines; those with everything stand at the top too."""
        top = self.rows[0].document() if self.rows else {}
        return {
            "backend": self.backend,
            "tier": self.tier,
            **top,
            "rows": [row.document() for row in self.rows],
        }


async def run_ablation(
    environment: Environment,
    conversations: Sequence[Conversation],
    reporter: Reporter,
    *,
    tier: Tier = "hot",
    every: int = 1,
    keep: bool = False,
) -> AblationReport:
    """Store every turn once; ask every question (or every `every`-th) with each switch off."""
    report = AblationReport(backend=environment.backend, tier=tier)
    stored = LocomoReport(backend=environment.backend, tier=tier)
    store = ConversationStore(environment, conversations, reporter, stored)
    variants = {name: EVERYTHING.without(name) for name in Ingredients.names()}
    try:
        await store.ingest()
        if tier == "cold":
            await store.close_sessions()
        questions = store.questions()[::every]
        await _ask(environment, store.run, questions, EVERYTHING, reporter)  # warms every cache
        for name, ingredients in {NOTHING_LEFT_OUT: EVERYTHING, **variants}.items():
            asked = await _ask(environment, store.run, questions, ingredients, reporter)
            report.rows.append(_row(name, *asked))
    finally:
        if not keep and not environment.temporary:
            with memory_context(environment.caller(f"{store.run}-asker")):
                await forget(environment.engine, list(store.keys.values()), reporter)
    return report


async def _ask(
    environment: Environment,
    run: str,
    questions: Sequence[Question[Target]],
    ingredients: Ingredients,
    reporter: Reporter,
) -> tuple[list[Reply[Target]], list[float]]:
    caller = environment.caller(f"{run}-asker")
    search = environment.engine.parts.search.search
    replies, processor = [], []
    with reporter.stage("searching", len(questions)) as advance:
        for question in questions:
            started, cpu = time.perf_counter(), time.process_time()
            found = await search(
                caller,
                question.text,
                scope=question.scope,
                limit=LIMIT,
                min_similarity=0.0,
                now=datetime.now(UTC),
                ingredients=ingredients,
            )
            processor.append(time.process_time() - cpu)
            seconds = time.perf_counter() - started
            keys = [hit.record.key for hit in found.hits]
            replies.append(Reply(question=question, keys=keys, seconds=seconds))
            advance(1)
    return replies, processor


def _row(name: str, replies: Sequence[Reply[Target]], processor: Sequence[float]) -> Ablation:
    return Ablation(
        without=name,
        quality=Quality.of(replies),
        p50_ms=percentile([reply.seconds for reply in replies], 50) * 1000,
        cpu_p50_ms=percentile(processor, 50) * 1000,
    )
