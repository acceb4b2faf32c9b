"""What is confided to the engine turns up where it belongs and nowhere else.

One run does everything that can be done, successes and errors alike, with marked words in
contents, queries, tasks and focus. None of them may then stand in an event, a fact, a log line, an
error, an audit record, a health report, the name of a Redis key, a Cypher text, or the schema of
the graph. That the search for them works is shown by planting one in each of these places, and by
finding those of contents where contents are kept.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import neo4j
import pytest

from orchestrata_memory.embedding.hashing import HashingModel
from orchestrata_memory.engine.bound import BoundMemory
from orchestrata_memory.engine.outbox_batch import OutboxBatch
from orchestrata_memory.errors import MemoryEngineError
from orchestrata_memory.hot import keys
from orchestrata_memory.interfaces import CXPPacket, SystemEvent, Topic
from orchestrata_memory.models import MemoryClassification, MemoryScope
from tests.isolation.conftest import Platform

pytestmark = pytest.mark.servers

CANARY = "zyxwcanary"
LOG = "orchestrata_memory.canaries"
PLACES = [
    *("events", "log", "errors", "audit", "health"),
    *("redis keys", "cypher", "labels", "relationships"),
]


@dataclass
class Run:
    """What came out of a run, as texts by place."""

    platform: Platform
    caplog: pytest.LogCaptureFixture
    cypher: list[str]
    errors: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    async def attempt(self, operation: Awaitable[Any]) -> Any:
        """Its result; an error is kept with its causes."""
        try:
            return await operation
        except MemoryEngineError as error:
            self.kinds.add(type(error).__name__)
            parts = traceback.TracebackException.from_exception(error)
            lines = [f"{error!r} {error} {vars(error)}"]
            while parts is not None:
                lines += parts.format_exception_only()
                parts = parts.__cause__ or parts.__context__
            self.errors.append("\n".join(lines))
            return None

    async def texts(self) -> dict[str, str]:
        engine = self.platform.engine
        await engine.settle()
        with self.platform.redis.client() as client:
            names = list(client.scan_iter("*"))
        schema = {
            "labels": "MATCH (n) UNWIND labels(n) AS x RETURN DISTINCT x",
            "relationships": "MATCH ()-[r]->() RETURN DISTINCT type(r) AS x",
            "audit": "MATCH (a:MemoryAudit) RETURN properties(a) AS x",
        }
        found = {}
        with self.platform.graph.driver() as driver:
            for place, text in schema.items():
                rows = driver.execute_query(text, database_=self.platform.graph.database).records
                found[place] = "\n".join(repr(row["x"]) for row in rows)
        return {
            **found,
            "events": "\n".join(map(repr, self.platform.kernel.events)),
            "log": "\n".join(
                f"{record.getMessage()} {record.exc_text or ''} {record.args!r}"
                for record in self.caplog.records
                if record.name.startswith("orchestrata_memory")
            ),
            "errors": "\n".join(self.errors),
            "health": repr(await engine.get_health()),
            "redis keys": "\n".join(names),
            "cypher": "\n".join(self.cypher),
        }


@pytest.fixture
def cypher(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every query text that goes to the graph."""
    seen: list[str] = []
    for kind in (neo4j.AsyncSession, neo4j.AsyncTransaction, neo4j.AsyncManagedTransaction):

        def recording(original: Callable[..., Any]) -> Callable[..., Any]:
            async def run(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
                seen.append(str(query))
                return await original(self, query, *args, **kwargs)

            return run

        monkeypatch.setattr(kind, "run", recording(kind.run))
    return seen


@pytest.fixture
async def run(
    platform: Platform, caplog: pytest.LogCaptureFixture, cypher: list[str]
) -> AsyncIterator[Run]:
    platform.directory.register("LEAD", "team_lead")
    platform.directory.register("READER")
    platform.kernel.events.clear()
    with caplog.at_level(logging.DEBUG, logger="orchestrata_memory"):
        yield Run(platform, caplog, cypher)


async def everything(run: Run) -> set[str]:
    """All operations, allowed, refused and impossible; the error types met."""
    platform, attempt = run.platform, run.attempt
    number = next(platform.numbers)
    session = f"canary {number}"
    context = {"project_id": session, "task_id": f"t {session}", "focus": f"{CANARY} focus"}
    lead = platform.as_("LEAD", session, **context)
    reader = platform.as_("READER", f"reading {session}", **context)
    stranger = platform.as_("STRANGER", session, **context)
    text = f"{CANARY} is the word of the day"

    private = await lead.store(text, metadata={"note": CANARY, "speaker": f"{CANARY} speaker"})
    named = f"named {number}"
    await lead.store(text, key=named, tags=["open"], classification=MemoryClassification.SHARED)
    await attempt(lead.store(f"{text}, again", key=named))
    await attempt(lead.store(text + " " * 70_000 + CANARY))
    await attempt(lead.store(f"{CANARY}\0"))
    await attempt(lead.store(text, metadata={"bad": object(), "note": CANARY}))
    await attempt(lead.store(text, tags=[f"{CANARY}\n"]))
    await attempt(reader.store(text, classification=MemoryClassification.SYSTEM))
    await lead.update(private.key, content=f"{text}, changed")
    await attempt(lead.update(private.key, content=" "))
    await attempt(lead.update("no such key", content=text))
    for volk in (reader, stranger):
        for operation in (
            volk.retrieve(private.key),
            volk.update(private.key, content=text),
            volk.delete(private.key),
            volk.share(private.key, "READER"),
            volk.promote(private.key),
            volk.lineage(private.key),
            volk.audit_trail(private.key),
            volk.store(text),
            volk.summarize(session),
            volk.search(f"{CANARY} query"),
            volk.inject(CXPPacket(), f"{CANARY} task"),
        ):
            await attempt(operation)
    await lead.share(private.key, "READER")
    await lead.delegate("READER")
    await reader.retrieve(private.key)
    await lead.search(f"what about {CANARY} AND (", scope=MemoryScope(project_id=session))
    await attempt(lead.search(f"{CANARY}\0"))
    await attempt(lead.search(CANARY * 10_000))
    await lead.inject(CXPPacket(), f"{CANARY} task", budget_tokens=16)
    await attempt(lead.inject(CXPPacket(), f"{CANARY}\0"))
    await lead.summarize(session, max_tokens=16)
    await lead.store_summary(session)
    await platform.engine.settle()
    await damage(run, lead, text)
    await platform.engine.close_session(session)
    await reader.search(f"{CANARY} in cold", min_similarity=0)
    await reader.related(private.key)
    await lead.audit_trail(private.key)
    await lead.revoke("READER")
    await lead.delete(private.key)
    await platform.engine.settle()
    return run.kinds


async def damage(run: Run, lead: BoundMemory, text: str) -> None:
    """A record that cannot be read, a model that fails, and a worker that meets a surprise."""
    engine = run.platform.engine

    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError(f"cannot work on {text}")

    with run.platform.redis.client() as client:
        client.xadd(keys.OUTBOX, {"kind": "put", "key": "bad", "content": text, "version": "x"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HashingModel, "encode", fails)
        await lead.store(f"{text}, unembeddable")
        await run.attempt(lead.search(f"{CANARY} with a broken model"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutboxBatch, "writes", fails)
        await lead.store(f"{text}, not written at first")
        while engine._wired.worker.last_error is None:  # noqa: ASYNC110 - it says it nowhere else
            await asyncio.sleep(0.01)


@pytest.mark.traces("REQ-010-047")
async def test_canaries_stay_where_they_belong(run: Run) -> None:
    kinds = await everything(run)
    assert kinds >= {
        "MemoryValidationError",
        "MemoryAccessDeniedError",
        "MemoryKeyExistsError",
        "MemoryNotFoundError",
    }
    texts = await run.texts()
    assert sorted(texts) == sorted(PLACES)
    for place, text in texts.items():
        assert text, f"nothing was looked at: {place}"
        at = text.lower().find(CANARY)
        assert at < 0, f"{place}: …{text[max(0, at - 200) : at + 100]}…"


@pytest.mark.parametrize("place", PLACES)
async def test_the_search_would_find_one(run: Run, place: str, monkeypatch: Any) -> None:
    platform = run.platform
    if place == "events":
        await platform.kernel.emit_event(
            SystemEvent(type=Topic.SEARCH_COMPLETED, source="x", payload={"deep": [CANARY]})
        )
    elif place == "log":
        logging.getLogger(LOG).debug("a line with %s", CANARY)
    elif place == "errors":
        await run.attempt(platform.as_("LEAD", "s").update(f"{CANARY} key", content="x"))
    elif place == "audit":
        await platform.as_("LEAD", "s").store("x", key=f"{CANARY} {next(platform.numbers)}")
    elif place == "health":
        broken = {"sweep": f"failed on {CANARY}"}
        monkeypatch.setattr(platform.engine._wired.upkeep, "problems", lambda: broken)
    elif place == "redis keys":
        with platform.redis.client() as client:
            client.set(f"orchestrata:memory:{CANARY}", "x")
    elif place == "cypher":
        await platform.engine.parts.cold.find(
            MemoryScope(), readable=None, limit=1, tags=[f"{CANARY} is a parameter"]
        )
        assert CANARY not in (await run.texts())[place].lower()
        await planted_in_cypher(platform)
    else:
        query = {
            "labels": f"CREATE (n:{CANARY}_node)",
            "relationships": f"CREATE (:Planted)-[:{CANARY}_edge]->(:Planted)",
        }[place]
        with platform.graph.driver() as driver:
            driver.execute_query(query, database_=platform.graph.database)
    assert CANARY in (await run.texts())[place].lower()
    undo(platform)


async def planted_in_cypher(platform: Platform) -> None:
    graph = platform.graph
    auth = (graph.username, graph.password) if graph.password else None
    async with (
        neo4j.AsyncGraphDatabase.driver(graph.uri, auth=auth) as driver,
        driver.session(database=graph.database) as session,
    ):
        await (await session.run(f"RETURN '{CANARY}'")).consume()


def undo(platform: Platform) -> None:
    with platform.redis.client() as client:
        client.delete(f"orchestrata:memory:{CANARY}")
    with platform.graph.driver() as driver:
        for query in (
            f"MATCH (n:{CANARY}_node) DETACH DELETE n",
            "MATCH (n:Planted) DETACH DELETE n",
        ):
            driver.execute_query(query, database_=platform.graph.database)


async def test_contents_are_found_where_contents_are_kept(run: Run) -> None:
    """So the canaries were really there to be found."""
    platform = run.platform
    session = f"kept {next(platform.numbers)}"
    entry = await platform.as_("LEAD", session).store(f"{CANARY} is kept")
    with platform.redis.client() as client:
        assert CANARY in client.hget(keys.entry(session, "LEAD", entry.key), "content")
    await platform.engine.settle()
    with platform.graph.driver() as driver:
        [row] = driver.execute_query(
            "MATCH (m:Memory {key: $key}) RETURN m.content AS content",
            key=entry.key,
            database_=platform.graph.database,
        ).records
    assert CANARY in row["content"]
