"""A new Redis before a graph that holds memories: what hot holds all of is found out by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrata_memory.container import build_engine
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.models import MemoryContext, MemoryScope
from tests.engine.conftest import As, engine_settings, until
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers


async def asked_tiers(
    engine: MemoryEngine, caller: MemoryContext, scope: MemoryScope
) -> tuple[str, ...]:
    outcome = await engine.parts.search.search(
        caller, "pilots", scope=scope, limit=5, min_similarity=0, now=datetime.now(UTC)
    )
    return outcome.tiers


async def test_searches_of_new_sessions_and_projects_come_to_ask_hot_alone(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path, as_: As
) -> None:
    settings = engine_settings(clean_redis, clean_graph, tmp_path)
    async with build_engine(settings) as engine:
        with as_(session_id="old", project_id="old"):
            await engine.store("the pilots left at dusk")
        assert await engine.settle()
    clean_redis.flush()
    async with build_engine(settings) as engine:
        with as_(session_id="new", project_id="new") as caller:
            await engine.store("the pilots board at dawn")
            assert await engine.settle()
            session, project = MemoryScope(session_id="new"), MemoryScope(project_id="new")
            assert await asked_tiers(engine, caller, session) == ("hot", "cold")

            async def hot_alone() -> bool:
                found = [await asked_tiers(engine, caller, scope) for scope in (session, project)]
                return found == [("hot",), ("hot",)]

            await until(hot_alone, seconds=30)
            await engine.store("and go ashore at noon")
            assert await hot_alone()
            assert await asked_tiers(engine, caller, MemoryScope(session_id="old")) == (
                "hot",
                "cold",
            )
            assert "cold" in await asked_tiers(engine, caller, MemoryScope())
            found = await engine.search("pilots", scope=MemoryScope(), min_similarity=0)
            assert len(found) == 3
