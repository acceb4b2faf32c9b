"""Opening, configuration mistakes, and a graph that goes away."""

from __future__ import annotations

import logging

import pytest

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.config.settings import GraphSettings
from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryEngineError,
    MemoryUnavailableError,
)
from orchestrata_memory.interfaces import HealthStatus
from tests.cold.builders import DIMENSION, EVERYTHING, address_of, asked, put, rows
from tests.servers.graph import GraphServer
from tests.servers.process import free_port

pytestmark = pytest.mark.servers

PATIENT = GraphSettings(operation_timeout_seconds=90)


def make(server: GraphServer, dimension: int = DIMENSION, **changes: object) -> GraphColdStore:
    return GraphColdStore(PATIENT, dimension=dimension, server=address_of(server, **changes))


@pytest.mark.traces("REQ-010-028")
async def test_the_schema_is_made_once(clean_graph: GraphServer) -> None:
    show = (
        "SHOW INDEXES YIELD name, type, labelsOrTypes, properties "
        "RETURN name, type, labelsOrTypes, properties"
    )
    first = make(clean_graph)
    await first.open()
    await first.open()
    before = sorted(map(str, rows(clean_graph, show)))
    await first.close()
    await first.close()
    second = make(clean_graph)
    await second.open()
    await second.close()
    assert sorted(map(str, rows(clean_graph, show))) == before
    assert len(before) >= 19


async def test_the_dialect_is_told_by_the_server(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    health = await store.health()
    assert health.status is HealthStatus.HEALTHY
    assert health.details["dialect"] == clean_graph.dialect
    assert clean_graph.password not in str(health) or not clean_graph.password


@pytest.mark.traces("REQ-010-038")
async def test_another_dimension_names_the_way_out(
    store: GraphColdStore, clean_graph: GraphServer
) -> None:
    with pytest.raises(MemoryConfigurationError, match=r"384 dimensions.*DROP INDEX"):
        await make(clean_graph, dimension=16).open()


async def test_a_wrong_password_is_named_and_not_shown(clean_graph: GraphServer) -> None:
    if not clean_graph.password:
        pytest.skip("this server asks for no login")
    store = make(clean_graph, password="not-the-secret")
    with pytest.raises(MemoryConfigurationError, match="refused the login") as caught:
        await store.open()
    assert "not-the-secret" not in str(caught.value)


async def test_a_wrong_database_is_named(clean_graph: GraphServer) -> None:
    with pytest.raises(MemoryConfigurationError, match=r"graph\.database"):
        await make(clean_graph, database="nosuchdatabase").open()


async def test_a_closed_port_is_unavailable(clean_graph: GraphServer) -> None:
    with pytest.raises(MemoryUnavailableError):
        await make(clean_graph, uri=f"bolt://127.0.0.1:{free_port()}").open()


@pytest.mark.parametrize("uri", ["ftp://127.0.0.1:1", "127.0.0.1", "bolt://[", ""])
async def test_an_address_of_the_wrong_form_is_a_configuration_error(uri: str) -> None:
    address = GraphAddress(uri=uri)
    with pytest.raises(MemoryConfigurationError):
        await GraphColdStore(PATIENT, dimension=DIMENSION, server=address).open()


def test_the_settings_give_the_address() -> None:
    with pytest.raises(MemoryConfigurationError, match=r"graph\.uri"):
        GraphColdStore(GraphSettings(), dimension=DIMENSION)
    settings = GraphSettings(uri="neo4j://u:p%40ss@graph.example:7687", database="d")
    address = GraphAddress.from_settings(settings)
    assert (address.uri, address.username) == ("neo4j://graph.example:7687", "u")
    assert address.password == "p@ss"
    assert "p@ss" not in repr(address)


async def test_before_open_and_after_close_it_is_unavailable(clean_graph: GraphServer) -> None:
    store = make(clean_graph)
    with pytest.raises(MemoryUnavailableError):
        await store.get(["a"])
    await store.open()
    await store.close()
    with pytest.raises(MemoryUnavailableError):
        await store.apply([put("a")])
    assert (await store.health()).status is HealthStatus.STOPPED


async def test_it_comes_back_after_the_server_was_killed(clean_graph: GraphServer) -> None:
    if not clean_graph.killable:
        pytest.skip("this server cannot be killed")
    store = make(clean_graph)
    await store.open()
    await store.apply([put("a")])
    clean_graph.kill()
    for work in (
        store.apply([put("b")]),
        store.get(["a"]),
        store.candidates(asked(terms=("alpha",))),
        store.statistics(["alpha"], EVERYTHING, None),
        store.delegations(),
    ):
        with pytest.raises(MemoryUnavailableError):
            await work
    assert (await store.health()).status is HealthStatus.UNHEALTHY
    clean_graph.start()
    assert await store.apply([put("b")]) == {}
    assert set(await store.get(["a", "b"])) == {"a", "b"}
    await store.close()


async def test_users_see_no_warnings_of_the_driver(
    store: GraphColdStore, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    with caplog.at_level(logging.WARNING):
        await store.apply([put("a", sources=("b",), source_versions=(1,))])
        await store.find(EVERYTHING, readable=None, limit=1)
        await store.related("a", depth=2, limit=5, readable=None)
        await store.delegations()
        await store.audit_of("a", limit=1)
    assert [one for one in caplog.records if one.name.startswith("neo4j")] == []
    assert list(recwarn) == []


async def test_errors_carry_no_content(store: GraphColdStore) -> None:
    problems = await store.apply([put("a", content="the secret \ud800")])
    assert "secret" not in str(problems)
    with pytest.raises(MemoryEngineError) as caught:
        await store.get([object()])  # type: ignore[list-item]
    assert caught.value.__cause__ is not None
