"""The demo's steps: each acts through the engine, reads the servers, and says what happened."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrata_memory.bench.environment import Environment
from orchestrata_memory.bench.models import models_in_use
from orchestrata_memory.cli.answers import shorten
from orchestrata_memory.cli.closing import close_session
from orchestrata_memory.cli.demo import facts, story
from orchestrata_memory.errors import MemoryAccessDeniedError
from orchestrata_memory.interfaces import CXPPacket
from orchestrata_memory.models import MemoryEntry, memory_context

Facts = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Step:
    """One step, as it is told.

    Attributes:
        tier: Where it happened, in words.
        lines: What happened.
        seconds: How long the engine took.
    """

    title: str
    tier: str
    lines: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def say(self, text: str) -> None:
        """Add a line."""
        self.lines.append(text)


Teller = Callable[[Step], None]


class Demo:
    """Plays the story on an environment.

    Args:
        environment: Servers, engine and plain clients.
        start_seconds: How long it took to start.
        tell: Called with every step when it is over.
    """

    def __init__(self, environment: Environment, start_seconds: float, tell: Teller) -> None:
        self._engine = environment.engine
        self._raw = environment.raw
        self._environment = environment
        self._start_seconds = start_seconds
        self._tell = tell
        self._steps: list[Step] = []
        self._began = time.perf_counter()
        self.facts: Facts = {"backend": environment.backend}

    async def play(self) -> Facts:
        """All steps in order; the facts they found."""
        await self._start()
        await self._store()
        await self._search("meaning", story.BY_MEANING, min_similarity=0.5)
        await self._search("word", story.BY_WORD, min_similarity=0.7)
        await self._deny()
        await self._summarize()
        await self._close()
        await self._come_back()
        await self._inject()
        self.facts["steps"] = [
            {"title": step.title, "tier": step.tier, "seconds": round(step.seconds, 4)}
            for step in self._steps
        ]
        elapsed = time.perf_counter() - self._began + self._start_seconds
        self.facts["seconds"] = round(elapsed, 2)
        return self.facts

    @asynccontextmanager
    async def _step(self, title: str, tier: str) -> AsyncIterator[Step]:
        step = Step(title=title, tier=tier)
        self._steps.append(step)
        yield step
        self._tell(step)

    async def _start(self) -> None:
        async with self._step("Start", "servers, model, rules") as step, _timed(step):
            await self._engine.parts.embedder.embed(["the first text loads the model"])
            self.facts["models"] = await models_in_use(self._engine.parts.embedder)
            step.say(f"{self._environment.backend}, started in {self._start_seconds:.1f} s")
            models = self.facts["models"]
            step.say(f"model {models['model']} by {models.get('document_backend', 'default')}")

    async def _store(self) -> None:
        async with self._step("Two Volks store what they see", "hot (Redis)") as step:
            async with _timed(step):
                for line in story.LINES:
                    with memory_context(story.caller(line.volk)):
                        await self._engine.store(
                            line.content,
                            key=line.key,
                            tags=list(line.tags),
                            metadata=line.metadata,
                            classification=line.classification,
                        )
            names = await facts.hot_entries(self._raw, story.INCIDENT)
            ttl = await facts.shortest_ttl(self._raw, names)
            self.facts["store"] = {
                "memories": len(story.LINES),
                "hot_entries": len(names),
                "hot_ttl_seconds": ttl,
                "seconds": round(step.seconds, 4),
            }
            each = step.seconds / len(story.LINES) * 1000
            step.say(f"{len(names)} hashes in Redis, each kept {ttl / 3600:.0f} h at least")
            step.say(f"{each:.1f} ms a store, flushed to disk; embedding and graph follow behind")

    async def _search(self, kind: str, query: str, *, min_similarity: float) -> None:
        async with self._step(f"Search by {kind}: {query!r}", "hot (Redis), in process") as step:
            with memory_context(story.caller(story.BRAVO)):
                async with _timed(step):
                    found = await self._engine.search(
                        query, limit=3, min_similarity=min_similarity, explain=True
                    )
            self.facts[f"search_by_{kind}"] = {
                "query": query,
                "count": len(found),
                "results": [_hit(entry) for entry in found],
            }
            for entry in found:
                step.say(f"{entry.relevance_score or 0:.2f}  {shorten(entry.content, 90)}")

    async def _deny(self) -> None:
        async with self._step("A private memory stays private", "rules (Prolog)") as step:
            denied: Facts = {"volk": story.BRAVO, "key": story.SECRET_KEY}
            async with _timed(step):
                with memory_context(story.caller(story.BRAVO)):
                    denied["denied"] = await self._try_to_read(denied, step)
                with memory_context(story.caller(story.ALPHA)):
                    await self._engine.share(story.SECRET_KEY, story.BRAVO)
                with memory_context(story.caller(story.BRAVO)):
                    readable = await self._engine.retrieve(story.SECRET_KEY)
            denied["readable_after_share"] = readable is not None
            step.say(f"{story.ALPHA} shares it: now {story.BRAVO} reads it")
            await self._engine.settle()
            with memory_context(story.caller(story.ALPHA)):
                trail = await self._engine.audit_trail(story.SECRET_KEY)
            denied["audit"] = [
                {"operation": item.operation, "volk": item.volk_id, "outcome": item.outcome}
                for item in trail
            ]
            told = ", ".join(f"{item.operation} {item.outcome}" for item in trail)
            step.say(f"the audit trail knows: {told}")
            self.facts["denial"] = denied

    async def _try_to_read(self, denied: Facts, step: Step) -> bool:
        try:
            await self._engine.retrieve(story.SECRET_KEY)
        except MemoryAccessDeniedError as error:
            denied.update(rule=error.rule, reason=error.reason)
            step.say(f"{story.BRAVO} is denied by {error.rule}: {error.reason}")
            return True
        return False

    async def _summarize(self) -> None:
        title = f"A summary in {story.SUMMARY_TOKENS} tokens"
        async with self._step(title, "hot and cold") as step:
            focus = "explain to customers what happened to their money"
            with memory_context(story.caller(story.BRAVO, focus=focus)):
                async with _timed(step):
                    summary = await self._engine.summarize(
                        story.INCIDENT, max_tokens=story.SUMMARY_TOKENS
                    )
                counter = self._engine.parts.counters.for_context(story.caller(story.BRAVO))
            self.facts["summary"] = {
                "token_budget": story.SUMMARY_TOKENS,
                "tokens_used": summary.token_count,
                "tokens_recounted": counter.count(summary.content),
                "counter": summary.counter,
                "source_count": summary.source_count,
                "source_keys": list(summary.source_keys),
                "omitted": summary.omitted,
            }
            step.say(summary.content)
            step.say(
                f"{summary.token_count} tokens by {summary.counter}, from {summary.source_count} "
                f"memories, {summary.omitted} left out"
            )

    async def _close(self) -> None:
        async with self._step("The session closes", "hot (Redis) → cold (graph)") as step:
            before = len(await facts.hot_entries(self._raw, story.INCIDENT))
            async with _timed(step):
                closed = await close_session(self._engine, story.INCIDENT)
                await self._engine.settle()
            self.facts["close"] = {
                "migrated": closed.migrated,
                "failed": closed.failed,
                "hot_before": before,
                "hot_after": len(await facts.hot_entries(self._raw, story.INCIDENT)),
                "outbox_after": await facts.outbox_length(self._raw),
                "graph_memories": await facts.graph_memories(self._raw, story.INCIDENT),
                "graph_embeddings": await facts.graph_embeddings(self._raw, story.INCIDENT),
                "relationships": await facts.graph_links(self._raw, story.INCIDENT),
            }
            found = self.facts["close"]
            step.say(f"Redis: {before} → {found['hot_after']} entries; {closed.migrated} moved")
            links = ", ".join(f"{n} {kind}" for kind, n in found["relationships"].items())
            step.say(f"graph: {found['graph_memories']} Memory nodes; {links}")

    async def _come_back(self) -> None:
        title = f"Four days later: {story.LATER_QUESTION!r}"
        async with self._step(title, "cold (graph) → hot (Redis)") as step:
            with memory_context(story.caller(story.BRAVO, story.FOLLOW_UP)):
                async with _timed(step):
                    found = await self._engine.search(
                        story.LATER_QUESTION, limit=3, min_similarity=0.5, explain=True
                    )
            await self._engine.settle()
            replicas = await facts.replica_entries(self._raw, story.FOLLOW_UP)
            self.facts["later"] = {
                "session_id": story.FOLLOW_UP,
                "count": len(found),
                "results": [_hit(entry) for entry in found],
                "replicas": list(replicas),
                "replica_ttl_seconds": min(replicas.values(), default=-2),
            }
            for entry in found:
                step.say(f"{entry.relevance_score or 0:.2f}  {shorten(entry.content, 90)}")
            step.say(f"{len(replicas)} of them are copied to Redis for the open session")

    async def _inject(self) -> None:
        title = f"Before the next task: {story.NEXT_TASK!r}"
        async with self._step(title, "packet") as step:
            packet = CXPPacket(packet_id="demo", source="KERNEL", target=story.BRAVO)
            with memory_context(story.caller(story.BRAVO, story.FOLLOW_UP)):
                async with _timed(step):
                    result = await self._engine.inject(
                        packet, story.NEXT_TASK, budget_tokens=story.INJECTION_TOKENS
                    )
            context = packet.metadata["memory_context"]
            self.facts["injection"] = {"memory_context": context, "remaining": result.remaining}
            step.say(context["summary"])
            step.say(
                f"memory_context: {context['tokens_used']} of {context['token_budget']} tokens "
                f"({context['strategy']}), {result.remaining} left, from "
                f"{len(context['injected_keys'])} memories"
            )


@asynccontextmanager
async def _timed(step: Step) -> AsyncIterator[None]:
    started = time.perf_counter()
    yield
    step.seconds += time.perf_counter() - started


def _hit(entry: MemoryEntry) -> Facts:
    explanation = entry.explanation
    return {
        "key": entry.key,
        "content": entry.content,
        "volk_id": entry.volk_id,
        "score": entry.relevance_score,
        "tier": explanation.tier if explanation else None,
        "terms": list(explanation.terms) if explanation else [],
    }
