"""``bench intents``: does context hurt where neighbours mean nothing?

CLINC150's training texts are stored in an order shuffled with a fixed seed; every test query is
asked, and the share of its first ten that carry the query's intent is compared with what an exact
cosine of the same model finds.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.metrics import mean, precision_at
from orchestrata_memory.bench.models import models_in_use
from orchestrata_memory.bench.searching import (
    Question,
    Reply,
    ask_all,
    embedding_p50_ms,
    timing_of,
)
from orchestrata_memory.bench.tidy import forget
from orchestrata_memory.bench.tiers import Tier
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.ingest.progress import Advance, Reporter
from orchestrata_memory.ingest.writers import WRITERS, chunks, write_streams
from orchestrata_memory.models import MemoryScope, memory_context

K = 10
_SEED = 150
_SETTLE_SECONDS = 900.0
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A text and its intent."""

    text: str
    intent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentSet:
    """What is stored, shuffled, and what is asked."""

    stored: tuple[Labelled, ...]
    asked: tuple[Labelled, ...]


def read_intents(path: Path) -> IntentSet:
    """The training and test texts of a CLINC150 file.

    Raises:
        MemoryValidationError: It is not one.
        OSError: It cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        stored = [Labelled(text=text, intent=intent) for text, intent in data["train"]]
        asked = [Labelled(text=text, intent=intent) for text, intent in data["test"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{path} is no CLINC150 file ({type(error).__name__}: {error})"
        raise MemoryValidationError("FILE", problem) from error
    random.Random(_SEED).shuffle(stored)  # noqa: S311 - a shuffle, not a secret
    return IntentSet(stored=tuple(stored), asked=tuple(asked))


@dataclass(slots=True, kw_only=True)
class IntentsReport:
    """What was measured.

    Attributes:
        exact_precision_at_10: Of an exact cosine with the same model.
    """

    backend: str
    tier: Tier
    memories: int
    replies: list[Reply[str]] = field(default_factory=list)
    precision_at_10: float = 0.0
    exact_precision_at_10: float = 0.0
    ingest_s: float = 0.0
    embedding_p50_ms: float = 0.0
    models: dict[str, object] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """The figures for machines."""
        timing = timing_of(self.replies)
        return {
            "backend": self.backend,
            "tier": self.tier,
            "n": len(self.replies),
            "precision_at_10": round(self.precision_at_10, 4),
            "exact_precision_at_10": round(self.exact_precision_at_10, 4),
            "query_p50_ms": round(timing.p50_ms, 3),
            "query_p95_ms": round(timing.p95_ms, 3),
            "embedding_p50_ms": round(self.embedding_p50_ms, 3),
            "memories": self.memories,
            "ingest_s": round(self.ingest_s, 2),
            "models": self.models,
        }


async def run_intents(
    environment: Environment,
    intents: IntentSet,
    reporter: Reporter,
    *,
    tier: Tier = "hot",
    every: int = 1,
    keep: bool = False,
) -> IntentsReport:
    """Store the training texts, ask the test queries (or every `every`-th), and compare."""
    engine = environment.engine
    store = IntentStore(environment, intents, reporter)
    report = IntentsReport(backend=environment.backend, tier=tier, memories=len(intents.stored))
    try:
        started = time.perf_counter()
        await store.ingest()
        report.ingest_s = time.perf_counter() - started
        if tier == "cold":
            await store.close_session()
        with memory_context(environment.caller(f"{store.run}-asker")):
            questions = store.questions()[::every]
            report.replies = await ask_all(engine, questions, reporter, limit=K)
            texts = [question.text for question in questions]
            report.embedding_p50_ms = await embedding_p50_ms(engine, texts)
        report.precision_at_10 = store.precision(report.replies)
        report.exact_precision_at_10 = await exact_precision(
            engine.parts.embedder, intents.stored, intents.asked[::every], reporter
        )
        report.models = await models_in_use(engine.parts.embedder)
    finally:
        if not keep and not environment.temporary:
            await store.forget()
    return report


class IntentStore:
    """CLINC150's training texts, stored as one session through the public interface."""

    def __init__(self, environment: Environment, intents: IntentSet, reporter: Reporter) -> None:
        self._environment = environment
        self._intents = intents
        self._reporter = reporter
        self._intent_of: dict[str, str] = {}
        self.run = f"intents-{uuid4().hex[:8]}"
        self._caller = environment.caller(self.run, project_id=self.run)

    async def ingest(self) -> None:
        """Store every text, and wait until cold has it too."""
        engine, stored = self._environment.engine, self._intents.stored

        async def store(item: Labelled) -> None:
            with memory_context(self._caller):
                entry = await engine.store(item.text)
            self._intent_of[entry.key] = item.intent

        size = -(-len(stored) // WRITERS)
        with self._reporter.stage("storing", len(stored)) as advance:
            await write_streams(chunks(stored, size), store, done=advance)
        with self._reporter.stage("writing behind", len(stored)) as advance:
            if not await engine.settle(_SETTLE_SECONDS):
                raise TimeoutError("cold did not take the texts in time")
            advance(len(stored))

    async def close_session(self) -> None:
        """Move everything to the graph."""
        await self._environment.engine.close_session(self._caller.session_id)

    def questions(self) -> list[Question[str]]:
        """Every query, with its intent."""
        scope = MemoryScope(project_id=self.run)
        return [
            Question(text=item.text, scope=scope, about=item.intent) for item in self._intents.asked
        ]

    def precision(self, replies: Sequence[Reply[str]]) -> float:
        """Mean precision at 10 of the answers."""
        return precision_of(replies, self._intent_of)

    async def forget(self) -> None:
        """Delete what was stored."""
        with memory_context(self._caller):
            await forget(self._environment.engine, list(self._intent_of), self._reporter)


def precision_of(replies: Sequence[Reply[str]], intent_of: dict[str, str]) -> float:
    """Mean precision at 10: right ones divided by 10, however few came back."""
    return mean(
        precision_at([intent_of.get(key, "") for key in reply.keys], {reply.question.about}, K)
        for reply in replies
    )


async def exact_precision(
    embedder: Embedder,
    stored: Sequence[Labelled],
    asked: Sequence[Labelled],
    reporter: Reporter,
) -> float:
    """Precision at 10 of an exact cosine over the same model's vectors."""
    with reporter.stage("exact cosine", len(stored) + len(asked)) as advance:
        matrix = await _vectors(embedder, [item.text for item in stored], advance)
        queries = await _vectors(embedder, [item.text for item in asked], advance)
    intents = [item.intent for item in stored]
    total = []
    for query, item in zip(queries, asked, strict=True):
        scores = matrix @ query
        best = np.argsort(-scores, kind="stable")[:K]
        total.append(precision_at([intents[index] for index in best], {item.intent}, K))
    return mean(total)


async def _vectors(
    embedder: Embedder, texts: Sequence[str], advance: Advance
) -> NDArray[np.float32]:
    rows: list[NDArray[np.float32]] = []
    for batch in chunks(texts, _BATCH):
        for encoding in await embedder.embed(batch):
            zero = np.zeros(embedder.dimension, dtype=np.float32)
            rows.append(zero if encoding is None else encoding.vector)
        advance(len(batch))
    return np.stack(rows)
