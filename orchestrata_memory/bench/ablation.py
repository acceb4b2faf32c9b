"""``bench ablation``: what each kind of evidence brings, and what it costs.

LoCoMo's questions as in ``bench locomo`` and, if wanted, CLINC150's queries as in ``bench
intents`` are asked once with everything and once without each ingredient of the ranking, over the
same store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.intents import IntentSet, IntentStore
from orchestrata_memory.bench.locomo import ConversationStore, LocomoReport, Quality
from orchestrata_memory.bench.locomo_data import Conversation
from orchestrata_memory.bench.metrics import percentile
from orchestrata_memory.bench.searching import Question, Reply, ask_each
from orchestrata_memory.bench.tidy import forget
from orchestrata_memory.bench.tiers import Tier
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.models import memory_context
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients

Q = TypeVar("Q")

LIMIT = 10
NOTHING_LEFT_OUT = "everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What the answers were worth without one ingredient.

    Attributes:
        without: Its name, or `NOTHING_LEFT_OUT`.
        quality: On LoCoMo, as are the times.
        precision_at_10: On CLINC150; None when that was not asked.
        p50_ms: Milliseconds of a search at the median.
        cpu_p50_ms: Processor time of this process in it, which other load disturbs less.
    """

    without: str
    quality: Quality
    precision_at_10: float | None
    p50_ms: float
    cpu_p50_ms: float

    def document(self) -> dict[str, object]:
        """The figures for machines."""
        return {
            "without": self.without,
            **self.quality.document(),
            "precision_at_10": _rounded(self.precision_at_10),
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
    intents: IntentSet | None = None,
    tier: Tier = "hot",
    every: int = 1,
    keep: bool = False,
) -> AblationReport:
    """Store everything once; ask every question (or every `every`-th) with each switch off."""
    report = AblationReport(backend=environment.backend, tier=tier)
    stored = LocomoReport(backend=environment.backend, tier=tier)
    talk = ConversationStore(environment, conversations, reporter, stored)
    unrelated = None if intents is None else IntentStore(environment, intents, reporter)
    variants = {name: EVERYTHING.without(name) for name in Ingredients.names()}
    try:
        await talk.ingest()
        if unrelated is not None:
            await unrelated.ingest()
        if tier == "cold":
            await talk.close_sessions()
            if unrelated is not None:
                await unrelated.close_session()
        asker = _Asker(environment, reporter, talk.run)
        questions = talk.questions()[::every]
        queries = [] if unrelated is None else unrelated.questions()[::every]
        await asker.ask(questions, EVERYTHING)  # warms every cache
        for name, ingredients in {NOTHING_LEFT_OUT: EVERYTHING, **variants}.items():
            replies = await asker.ask(questions, ingredients)
            others = await asker.ask(queries, ingredients)
            report.rows.append(
                Ablation(
                    without=name,
                    quality=Quality.of(replies),
                    precision_at_10=None if unrelated is None else unrelated.precision(others),
                    p50_ms=percentile([reply.seconds for reply in replies], 50) * 1000,
                    cpu_p50_ms=percentile([reply.cpu_seconds for reply in replies], 50) * 1000,
                )
            )
    finally:
        if not keep and not environment.temporary:
            with memory_context(environment.caller(f"{talk.run}-asker")):
                await forget(environment.engine, list(talk.keys.values()), reporter)
            if unrelated is not None:
                await unrelated.forget()
    return report


class _Asker:
    """Asks through the search pipeline, where ingredients can be left out."""

    def __init__(self, environment: Environment, reporter: Reporter, run: str) -> None:
        self._search = environment.engine.parts.search
        self._caller = environment.caller(f"{run}-asker")
        self._reporter = reporter

    async def ask(
        self, questions: Sequence[Question[Q]], ingredients: Ingredients
    ) -> list[Reply[Q]]:
        """Ask one question after the other."""

        async def search(question: Question[Q]) -> list[str]:
            found = await self._search.search(
                self._caller,
                question.text,
                scope=question.scope,
                limit=LIMIT,
                min_similarity=0.0,
                now=datetime.now(UTC),
                ingredients=ingredients,
            )
            return [hit.record.key for hit in found.hits]

        return await ask_each(search, questions, self._reporter)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
