"""Asking many questions of a store, and what the answers were worth."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from orchestrata_memory.bench.metrics import Timing, percentile
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.models import MemoryScope

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

Q = TypeVar("Q")

SHARE_SAMPLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Q]):
    """What is asked, where, and what it is about."""

    text: str
    scope: MemoryScope
    about: Q


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[Q]):
    """Keys found, best first, and the seconds it took.

    Attributes:
        cpu_seconds: Processor time of this process in it.
    """

    question: Question[Q]
    keys: list[str]
    seconds: float
    cpu_seconds: float = 0.0


async def ask_all(
    engine: MemoryEngine,
    questions: Sequence[Question[Q]],
    reporter: Reporter,
    *,
    limit: int = 10,
    min_similarity: float = 0.0,
) -> list[Reply[Q]]:
    """Ask one question after the other through the public interface."""

    async def search(question: Question[Q]) -> list[str]:
        found = await engine.search(
            question.text, scope=question.scope, limit=limit, min_similarity=min_similarity
        )
        return [entry.key for entry in found]

    return await ask_each(search, questions, reporter)


async def ask_each(
    search: Callable[[Question[Q]], Awaitable[list[str]]],
    questions: Sequence[Question[Q]],
    reporter: Reporter,
) -> list[Reply[Q]]:
    """Ask one question after the other by `search`, which gives the keys found, and time it."""
    replies = []
    with reporter.stage("searching", len(questions)) as advance:
        for question in questions:
            started, cpu = time.perf_counter(), time.process_time()
            keys = await search(question)
            cpu_seconds = time.process_time() - cpu
            seconds = time.perf_counter() - started
            replies.append(
                Reply(question=question, keys=keys, seconds=seconds, cpu_seconds=cpu_seconds)
            )
            advance(1)
    return replies


def timing_of(replies: Iterable[Reply[Q]]) -> Timing:
    """How long the searches took."""
    return Timing.of([reply.seconds for reply in replies])


async def embedding_p50_ms(engine: MemoryEngine, texts: Sequence[str]) -> float:
    """Milliseconds, at the median, that embedding a fresh query alone takes here."""
    taken = []
    for text in texts[:SHARE_SAMPLES]:
        started = time.perf_counter()
        await engine.parts.embedder.embed_query(f"{text} ?")
        taken.append(time.perf_counter() - started)
    return percentile(taken, 50) * 1000
