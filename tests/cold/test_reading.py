"""Find, traversal, lineage, counts, audit, delegations."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from orchestrata_memory.cold.base import ColdDelete, FindOrder, Readable
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.models import AuditRecord, Delegation, MemoryScope
from tests.cold.builders import ALPHA, BETA, EVERYTHING, START, links, put, rows
from tests.servers.graph import GraphServer

pytestmark = pytest.mark.servers


@pytest.mark.traces("REQ-010-012", "REQ-010-013")
async def test_find_by_tags_and_order(store: GraphColdStore) -> None:
    await store.apply(
        [
            put("a", tags=("x", "y"), minute=1),
            put("b", tags=("x",), minute=2, task_id="t"),
            put("c", tags=("y", "it's {z}"), minute=2),
            put("d", minute=0),
            put("s", tags=("x",), minute=9, sources=("a",), source_versions=(1,)),
        ]
    )

    async def find(**options: object) -> list[str]:
        given = {"readable": None, "limit": 10, **options}
        return [one.key for one in await store.find(EVERYTHING, **given)]  # type: ignore[arg-type]

    assert await find() == ["b", "c", "a", "d"]
    assert await find(order=FindOrder.OLDEST) == ["d", "a", "b", "c"]
    assert await find(limit=2, offset=1) == ["c", "a"]
    assert await find(tags=("x", "y")) == ["a"]
    assert await find(tags=("x", "y"), match_all=False) == ["b", "c", "a"]
    assert await find(tags=("it's {z}",)) == ["c"]
    assert await find(tags=("x",), include_summaries=True) == ["s", "b", "a"]
    by_task = await store.find(MemoryScope(task_id="t"), readable=None, limit=10)
    assert [one.key for one in by_task] == ["b"]


class TestRelated:
    """A walk over sessions, tasks, projects and summaries."""

    @pytest.mark.traces("REQ-010-031")
    async def test_nearest_first_and_no_deeper_than_asked(self, store: GraphColdStore) -> None:
        await store.apply(
            [
                put("start", session_id="s1", task_id="t1"),
                put("same-session", session_id="s1"),
                put("same-task", session_id="s2", task_id="t1", project_id="p1"),
                put("same-project", session_id="s3", project_id="p1"),
                put("far", session_id="s3", project_id="p2"),
                put("sum", session_id="s9", sources=("start",), source_versions=(1,)),
                put("alone", session_id="s8"),
            ]
        )

        async def walk(depth: int, limit: int = 50) -> list[tuple[str, int, tuple[str, ...]]]:
            found = await store.related("start", depth=depth, limit=limit, readable=None)
            return [(one.record.key, one.distance, one.via) for one in found]

        one = [
            ("sum", 1, ("summary",)),
            ("same-session", 1, ("session",)),
            ("same-task", 1, ("task",)),
        ]
        two = [*one, ("same-project", 2, ("task", "project"))]
        assert await walk(1) == one
        assert await walk(2) == two
        assert await walk(3) == [*two, ("far", 3, ("task", "project", "session"))]
        assert await walk(5) == await walk(3)
        assert await walk(5, limit=2) == one[:2]
        assert await store.related("unknown", depth=2, limit=9, readable=None) == []

    async def test_no_path_leads_through_what_is_not_readable(self, store: GraphColdStore) -> None:
        await store.apply(
            [
                put("start", volk_id=BETA, session_id="s1"),
                put("secret", session_id="s1", project_id="p"),
                put("behind", volk_id=BETA, session_id="s2", project_id="p"),
                put("beside", volk_id=BETA, session_id="s1", minute=1),
            ]
        )
        readable = Readable(volk_id=BETA)
        found = await store.related("start", depth=5, limit=9, readable=readable)
        assert [one.record.key for one in found] == ["beside"]
        assert await store.related("secret", depth=5, limit=9, readable=readable) == []
        everything = await store.related("start", depth=5, limit=9, readable=None)
        assert {one.record.key for one in everything} == {"secret", "behind", "beside"}

    async def test_a_large_project_gives_no_more_than_asked(self, store: GraphColdStore) -> None:
        for start in range(0, 1000, 500):
            await store.apply(
                [
                    put(f"m{n}", session_id=f"s{n}", project_id="p", minute=n)
                    for n in range(start, start + 500)
                ]
            )
        found = await store.related("m0", depth=5, limit=7, readable=None)
        assert [one.record.key for one in found] == [f"m{n}" for n in range(999, 992, -1)]
        assert {one.distance for one in found} == {1}
        every = await store.related("m0", depth=5, limit=10_000, readable=None)
        assert len(every) == 999


class TestLineage:
    """Summaries and their sources."""

    @pytest.mark.traces("REQ-010-035")
    async def test_a_chain_of_two_levels(
        self, store: GraphColdStore, clean_graph: GraphServer
    ) -> None:
        await store.apply(
            [
                put("top", sources=("mid", "c"), source_versions=(1, 1), minute=3),
                put("mid", sources=("a", "b"), source_versions=(1, 1), minute=2),
                *(put(key) for key in "abc"),
            ]
        )
        above = await store.summaries_of(["a", "b", "c", "mid", "top"])
        assert {key: [one.key for one in found] for key, found in above.items()} == {
            "a": ["mid"],
            "b": ["mid"],
            "c": ["top"],
            "mid": ["top"],
        }
        assert {("DERIVED_FROM", "a"), ("DERIVED_FROM", "b"), ("SUMMARIZED_BY", "top")} <= links(
            clean_graph, "mid"
        )
        assert (await store.get(["top"]))["top"].sources == ("mid", "c")

    async def test_a_source_may_come_after_its_summary(
        self, store: GraphColdStore, clean_graph: GraphServer
    ) -> None:
        await store.apply([put("sum", sources=("a", "b"), source_versions=(1, 1))])
        assert await store.summaries_of(["a"]) == {}
        await store.apply([put("a")])
        await store.apply([put("b")])
        assert set(await store.summaries_of(["a", "b"])) == {"a", "b"}
        assert ("SUMMARIZED_BY", "sum") in links(clean_graph, "b")

    async def test_links_survive_an_update_and_go_with_a_delete(
        self, store: GraphColdStore, clean_graph: GraphServer
    ) -> None:
        await store.apply([put("a"), put("b"), put("s", sources=("a",), source_versions=(1,))])
        await store.apply([put("a", version=2)])
        assert set(await store.summaries_of(["a"])) == {"a"}
        await store.apply([put("s", version=2, sources=("b",), source_versions=(1,))])
        assert set(await store.summaries_of(["a", "b"])) == {"b"}
        await store.apply([ColdDelete(key="s", version=3)])
        assert await store.summaries_of(["a", "b"]) == {}
        leftover = "MATCH ()-[r:SUMMARIZED_BY|DERIVED_FROM]->() RETURN count(r)"
        assert rows(clean_graph, leftover) == [[0]]


async def test_counts_by_project_and_session(store: GraphColdStore) -> None:
    assert await store.counts() == {"all": 0}
    await store.apply(
        [put("a", project_id="p"), put("b", project_id="p", session_id="s2"), put("c")]
    )
    assert await store.counts() == {"all": 3, "project:p": 2}
    assert await store.count_session("session-1") == 2
    assert await store.count_session("unknown") == 0
    await store.apply([ColdDelete(key="a", version=2)])
    assert await store.counts() == {"all": 2, "project:p": 1}


def _audit(number: int, key: str | None = "k") -> AuditRecord:
    return AuditRecord(
        audit_id=f"{number:032x}",
        operation="store",
        volk_id=ALPHA,
        session_id="session-1",
        key=key,
        rule="can_store_memory",
        outcome="allowed",
        detail="version 1",
        at=START + timedelta(minutes=number),
    )


@pytest.mark.traces("REQ-010-047")
async def test_the_audit_trail_is_kept_once_and_pruned(store: GraphColdStore) -> None:
    trail = [_audit(n) for n in range(5)]
    await store.append_audit([*trail, _audit(9, key=None)])
    await store.append_audit(trail[::-1])
    assert await store.audit_of("k", limit=10) == trail
    assert await store.audit_of("k", limit=2) == trail[3:]
    assert await store.prune_audit(START + timedelta(minutes=3)) == 3
    assert await store.audit_of("k", limit=10) == trail[3:]
    assert await store.prune_audit(START + timedelta(minutes=3)) == 0


@pytest.mark.traces("REQ-010-048")
async def test_the_newest_version_of_a_delegation_stands(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    grant = Delegation(
        delegator=ALPHA, delegate=BETA, created_at=START, expires_at=START + timedelta(days=1)
    )
    revoked = Delegation(delegator=ALPHA, delegate=BETA, created_at=START, revoked=True, version=2)
    other = Delegation(delegator=BETA, delegate=ALPHA, created_at=START, version=4)
    await store.put_delegations([grant, other])
    assert await store.delegations() == [grant, other]
    await asyncio.gather(*(store.put_delegations([one]) for one in (revoked, grant) * 3))
    assert await store.delegations() == [revoked, other]
    assert rows(clean_graph, "MATCH (:Volk)-[r:DELEGATED_TO]->(:Volk) RETURN count(r)") == [[2]]
