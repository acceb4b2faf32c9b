"""Ids, contents and queries that are commands to somebody: they stay text.

Each passes through the names and scripts of Redis, Cypher, the full-text query, Prolog and the
log. Ids that differ never meet, whatever they look like; nothing is executed; every text comes
back as it was given.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from orchestrata_memory.engine.bound import BoundMemory
from orchestrata_memory.errors import MemoryAccessDeniedError
from orchestrata_memory.hot import keys
from orchestrata_memory.interfaces import HealthStatus
from orchestrata_memory.models import MemoryContext, MemoryEntry, MemoryScope
from tests.isolation.alphabets import FRAGMENTS, siblings, texts
from tests.isolation.conftest import Platform

pytestmark = pytest.mark.servers

LANGUAGES = sorted(FRAGMENTS)
LABELS = {
    *("Memory", "Session", "Volk", "Task", "Project"),
    *("MemoryVersion", "MemoryAnchor", "MemoryAudit"),
}
RELATIONSHIPS = {
    *("BELONGS_TO", "CREATED_BY", "RELATES_TO", "PART_OF"),
    *("SUMMARIZED_BY", "DERIVED_FROM", "SHARED_WITH", "DELEGATED_TO"),
}
ON_SERVERS = settings(
    max_examples=4,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def keys_of(entries: Sequence[MemoryEntry]) -> list[str]:
    return sorted(entry.key for entry in entries)


@pytest.fixture
async def unharmed(platform: Platform, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Platform]:
    """What must be the same afterwards: a bystander, the servers, the schema, the log."""
    platform.directory.register("BYSTANDER")
    bystander = platform.as_("BYSTANDER", "bystander")
    entry = await bystander.store("an innocent memory")
    await platform.engine.settle()
    with caplog.at_level(logging.DEBUG, logger="orchestrata_memory"):
        yield platform
    await platform.engine.settle()
    assert await bystander.retrieve(entry.key) == entry
    health = await platform.engine.get_health()
    assert health.status is not HealthStatus.UNHEALTHY
    with platform.redis.client() as client:
        for name in client.scan_iter("*"):
            assert name.startswith(keys.PREFIX)
            assert name.isascii()
            assert name.isprintable()
    with platform.graph.driver() as driver:
        database = platform.graph.database
        labels = driver.execute_query(
            "MATCH (n) UNWIND labels(n) AS l RETURN DISTINCT l", database_=database
        ).records
        types = driver.execute_query(
            "MATCH ()-[r]->() RETURN DISTINCT type(r) AS t", database_=database
        ).records
    assert {row["l"] for row in labels} <= LABELS
    assert {row["t"] for row in types} <= RELATIONSHIPS
    for record in caplog.records:
        message = record.getMessage()
        assert "\n" not in message, "a log line that somebody else could have written"
        assert record.levelno < logging.ERROR, message


class Owners:
    """For each id a Volk, a session, a task, a project, a key and a tag, all of that name."""

    def __init__(self, platform: Platform, ids: Sequence[str]) -> None:
        self.platform = platform
        self.ids = ids
        for each in ids:
            platform.directory.register(each)

    def volk(self, name: str) -> BoundMemory:
        context = MemoryContext(
            volk_id=name, session_id=name, task_id=name, project_id=name, portfolio_id=name
        )
        return BoundMemory(self.platform.engine, context)

    async def store(self) -> None:
        for each in self.ids:
            await self.volk(each).store(f"content of {each}", key=each, tags=[each])

    async def move_to_cold(self) -> None:
        assert await self.platform.engine.settle()
        for each in self.ids:
            assert await self.volk(each).migrate_to_cold(each) == 1

    async def check(self) -> None:
        for me in self.ids:
            await self._sees_its_own(me)
            for other in set(self.ids) - {me}:
                with pytest.raises(MemoryAccessDeniedError):
                    await self.volk(me).retrieve(other)
                with pytest.raises(MemoryAccessDeniedError):
                    await self.volk(me).delete(other)

    async def _sees_its_own(self, me: str) -> None:
        volk = self.volk(me)
        own = await volk.retrieve(me)
        assert own is not None
        assert (own.content, own.tags, own.volk_id) == (f"content of {me}", (me,), me)
        for scope in (
            MemoryScope(session_id=me),
            MemoryScope(volk_id=me),
            MemoryScope(task_id=me),
            MemoryScope(project_id=me),
            MemoryScope(portfolio_id=me),
            MemoryScope(),
        ):
            assert keys_of(await volk.find(scope=scope)) == [me], scope
        assert keys_of(await volk.find(tags=[me])) == [me]
        for query in (me, f"content of {me}", "content"):
            assert keys_of(await volk.search(query, min_similarity=0)) == [me]
        assert (await volk.summarize(me)).source_keys == (me,)
        for other in set(self.ids) - {me}:
            assert await volk.find(tags=[other]) == []
            assert await volk.search("content", scope=MemoryScope(session_id=other)) == []
            assert (await volk.summarize(other)).source_keys == ()

    async def share_in_a_ring(self) -> None:
        for me, other in zip(self.ids, [*self.ids[1:], self.ids[0]], strict=True):
            await self.volk(me).share(me, other)
            assert keys_of(await self.volk(other).find()) == sorted({me, other})
            await self.volk(me).unshare(me, other)
            await self.volk(me).delegate(other)
            assert keys_of(await self.volk(other).find()) == [other]
            assert await self.volk(me).revoke(other)

    async def delete(self) -> None:
        for place, me in enumerate(self.ids):
            assert await self.volk(me).delete(me)
            assert await self.volk(me).retrieve(me) is None
            for left in self.ids[place + 1 :]:
                assert await self.volk(left).retrieve(left) is not None
            assert {r.volk_id for r in await self.volk(me).audit_trail(me)} >= {me}


@pytest.mark.traces("REQ-010-025", "REQ-010-046")
@pytest.mark.parametrize("language", LANGUAGES)
@ON_SERVERS
@given(data=st.data())
async def test_ids_that_differ_never_meet(
    unharmed: Platform, language: str, data: st.DataObject
) -> None:
    owners = Owners(unharmed, data.draw(siblings(language)))
    await owners.store()
    await owners.check()
    await owners.move_to_cold()
    await owners.check()
    await owners.share_in_a_ring()
    await owners.delete()


@pytest.mark.traces("REQ-010-012")
@pytest.mark.parametrize("language", LANGUAGES)
@ON_SERVERS
@given(data=st.data())
async def test_texts_come_back_and_are_no_commands(
    unharmed: Platform, language: str, data: st.DataObject
) -> None:
    """In contents, queries, tags, focus and metadata; from hot and from cold."""
    contents = data.draw(
        st.lists(
            texts(language, controls=True).filter(str.strip), min_size=3, max_size=3, unique=True
        )
    )
    unharmed.directory.register("WRITER")
    number = next(unharmed.numbers)
    session = f"texts {number}"
    writer = unharmed.as_("WRITER", session, project_id=session, focus=contents[0])
    scope = MemoryScope(project_id=session)
    stored = [
        await writer.store(content, metadata={"note": content, f"k{content}": [content]})
        for content in contents
    ]
    for place in ("hot", "cold"):
        for entry, content in zip(stored, contents, strict=True):
            assert entry.content == content
            assert await writer.retrieve(entry.key) == entry, place
            hits = await writer.search(content, scope=scope, min_similarity=0)
            assert keys_of(hits) == keys_of(stored), place
            assert await writer.search(content, scope=MemoryScope(project_id="none")) == []
        summary = await writer.summarize(session)
        assert set(summary.source_keys) <= {entry.key for entry in stored}
        if place == "hot":
            assert await unharmed.engine.settle()
            assert await writer.migrate_to_cold(session) == len(stored)
