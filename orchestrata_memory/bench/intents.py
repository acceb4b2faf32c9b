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
    except (ValueError, KeyError, TypeError) as error:
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
    asked = intents.asked[::every]
    report = IntentsReport(backend=environment.backend, tier=tier, memories=len(intents.stored))
    run = f"intents-{uuid4().hex[:8]}"
    caller = environment.caller(run, project_id=run)
    intent_of: dict[str, str] = {}
    try:
        started = time.perf_counter()
        with memory_context(caller):
            await _ingest(environment, intents.stored, intent_of, reporter)
        report.ingest_s = time.perf_counter() - started
        if tier == "cold":
            await engine.close_session(caller.session_id)
        with memory_context(environment.caller(f"{run}-asker")):
            scope = MemoryScope(project_id=run)
            questions = [Question(text=q.text, scope=scope, about=q.intent) for q in asked]
            report.replies = await ask_all(engine, questions, reporter, limit=K)
            texts = [question.text for question in questions]
            report.embedding_p50_ms = await embedding_p50_ms(engine, texts)
        report.precision_at_10 = precision_of(report.replies, intent_of)
        report.exact_precision_at_10 = await exact_precision(
            engine.parts.embedder, intents.stored, asked, reporter
        )
        report.models = await models_in_use(engine.parts.embedder)
    finally:
        if not keep and not environment.temporary:
            with memory_context(caller):
                await forget(engine, list(intent_of), reporter)
    return report


async def _ingest(
    environment: Environment,
    stored: Sequence[Labelled],
    intent_of: dict[str, str],
    reporter: Reporter,
) -> None:
    async def store(item: Labelled) -> None:
        entry = await environment.engine.store(item.text)
        intent_of[entry.key] = item.intent

    size = -(-len(stored) // WRITERS)
    with reporter.stage("storing", len(stored)) as advance:
        await write_streams(chunks(stored, size), store, done=advance)
    with reporter.stage("writing behind", len(stored)) as advance:
        if not await environment.engine.settle(_SETTLE_SECONDS):
            raise TimeoutError("cold did not take the texts in time")
        advance(len(stored))


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
