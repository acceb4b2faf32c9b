"""``bench locomo``: are the turns that answer a question among the first ten found?

Every turn is one memory, all conversations in one store by one Volk: a conversation is a project,
a session of it a session. Questions of categories 1 to 4 are asked in the scope of their project.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.locomo_data import Conversation
from orchestrata_memory.bench.metrics import any_at, fraction_at, mean
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
from orchestrata_memory.ingest import IngestItem
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.ingest.writers import write_streams
from orchestrata_memory.models import MemoryScope, memory_context

_SETTLE_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a question is about: its category, and the keys of the turns that answer it."""

    category: int
    keys: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What the answers to some questions were worth."""

    n: int
    any_at_5: float
    any_at_10: float
    fraction_at_10: float

    @classmethod
    def of(cls, replies: Sequence[Reply[Target]]) -> Quality:
        """The means over the replies."""
        ranked = [(reply.keys, reply.question.about.keys) for reply in replies]
        return cls(
            n=len(ranked),
            any_at_5=mean(any_at(keys, wanted, 5) for keys, wanted in ranked),
            any_at_10=mean(any_at(keys, wanted, 10) for keys, wanted in ranked),
            fraction_at_10=mean(fraction_at(keys, wanted, 10) for keys, wanted in ranked),
        )

    def document(self) -> dict[str, object]:
        """The figures for machines."""
        return {
            "n": self.n,
            "any_at_5": round(self.any_at_5, 4),
            "any_at_10": round(self.any_at_10, 4),
            "fraction_at_10": round(self.fraction_at_10, 4),
        }


@dataclass(slots=True, kw_only=True)
class LocomoReport:
    """What was measured."""

    backend: str
    tier: Tier
    replies: list[Reply[Target]] = field(default_factory=list)
    memories: int = 0
    ingest_s: float = 0.0
    embedding_p50_ms: float = 0.0
    models: dict[str, object] = field(default_factory=dict)

    def by_category(self) -> dict[int, Quality]:
        """The figures of each category."""
        categories = sorted({reply.question.about.category for reply in self.replies})
        return {
            category: Quality.of(
                [reply for reply in self.replies if reply.question.about.category == category]
            )
            for category in categories
        }

    def document(self) -> dict[str, object]:
        """The figures for machines."""
        timing = timing_of(self.replies)
        return {
            "backend": self.backend,
            "tier": self.tier,
            **Quality.of(self.replies).document(),
            "query_p50_ms": round(timing.p50_ms, 3),
            "query_p95_ms": round(timing.p95_ms, 3),
            "embedding_p50_ms": round(self.embedding_p50_ms, 3),
            "memories": self.memories,
            "ingest_s": round(self.ingest_s, 2),
            "by_category": {
                str(category): quality.document()
                for category, quality in self.by_category().items()
            },
            "models": self.models,
        }


async def run_locomo(
    environment: Environment,
    conversations: Sequence[Conversation],
    reporter: Reporter,
    *,
    tier: Tier = "hot",
    every: int = 1,
    keep: bool = False,
) -> LocomoReport:
    """Store every turn, ask every question (or every `every`-th), and judge what came back."""
    report = LocomoReport(backend=environment.backend, tier=tier)
    bench = ConversationStore(environment, conversations, reporter, report)
    try:
        await bench.ingest()
        if tier == "cold":
            await bench.close_sessions()
        with memory_context(environment.caller(f"{bench.run}-asker")):
            questions = bench.questions()[::every]
            report.replies = await ask_all(environment.engine, questions, reporter)
            texts = [question.text for question in questions]
            report.embedding_p50_ms = await embedding_p50_ms(environment.engine, texts)
        report.models = await models_in_use(environment.engine.parts.embedder)
    finally:
        if not keep and not environment.temporary:
            with memory_context(environment.caller(f"{bench.run}-asker")):
                await forget(environment.engine, list(bench.keys.values()), reporter)
    return report


class ConversationStore:
    """LoCoMo's conversations, stored through the public interface."""

    def __init__(
        self,
        environment: Environment,
        conversations: Sequence[Conversation],
        reporter: Reporter,
        report: LocomoReport,
    ) -> None:
        self._environment = environment
        self._conversations = conversations
        self._reporter = reporter
        self._report = report
        self.run = f"locomo-{uuid4().hex[:8]}"
        self.keys: dict[str, str] = {}

    def _project(self, conversation: Conversation) -> str:
        return f"{self.run}-{conversation.name}"

    def _session(self, turn: IngestItem) -> str:
        return f"{self.run}-{turn.session_id}"

    async def ingest(self) -> None:
        """Store every turn, in order within its session, and wait until cold has it too."""
        streams = [
            [(conversation, turn) for turn in session]
            for conversation in self._conversations
            for session in conversation.sessions()
        ]
        total = sum(map(len, streams))
        started = time.perf_counter()
        with self._reporter.stage("storing turns", total) as advance:
            await write_streams(streams, self._store, done=advance)
        with self._reporter.stage("writing behind", total) as advance:
            if not await self._environment.engine.settle(_SETTLE_SECONDS):
                raise TimeoutError("cold did not take the turns in time")
            advance(total)
        self._report.memories = len(self.keys)
        self._report.ingest_s = time.perf_counter() - started

    async def _store(self, item: tuple[Conversation, IngestItem]) -> None:
        conversation, turn = item
        metadata: dict[str, Any] = {"speaker": turn.speaker}
        if turn.occurred_at is not None:
            metadata["occurred_at"] = turn.occurred_at.isoformat()
        caller = self._environment.caller(
            self._session(turn), project_id=self._project(conversation)
        )
        with memory_context(caller):
            entry = await self._environment.engine.store(turn.content, metadata=metadata)
        self.keys[turn.key] = entry.key

    async def close_sessions(self) -> None:
        """Move every session to the graph."""
        sessions = [
            self._session(session[0])
            for conversation in self._conversations
            for session in conversation.sessions()
        ]
        with self._reporter.stage("closing sessions", len(sessions)) as advance:
            for session_id in sessions:
                await self._environment.engine.close_session(session_id)
                advance(1)

    def questions(self) -> list[Question[Target]]:
        """Every question, with the keys of its evidence."""
        return [
            Question(
                text=asked.question,
                scope=MemoryScope(project_id=self._project(conversation)),
                about=Target(
                    category=asked.category,
                    keys=frozenset(self.keys[turn] for turn in asked.evidence),
                ),
            )
            for conversation in self._conversations
            for asked in conversation.questions
        ]
