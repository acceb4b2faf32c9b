"""Real servers for every test that asks for them.

`redis_server` and `graph_server` (once for ArcadeDB, once for Neo4j) live as long as the run;
`clean_redis` and `clean_graph` are the same, emptied before the test. A run without a Neo4j skips
its half and says so loudly; with ``CI`` set that is an error.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Literal

import pytest

from tests.servers.graph import GraphServer
from tests.servers.neo4j_source import NoNeo4jError
from tests.servers.pool import ServerPool
from tests.servers.redis import RedisServer
from tests.tracing import check_marks, record, write_results

POOL = pytest.StashKey[ServerPool]()


HEAVY = ("bench", "cli", "faults", "isolation", "properties", "retrieval_search")
"""Folders whose tests look at the engine, not at a graph; on ArcadeDB alone unless asked."""

LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-graphs",
        action="store_true",
        help=f"run the tests of {', '.join(HEAVY)} on Neo4j too (make test-full)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what runs on Neo4j, keep the heavy folders to one graph unless asked.

    Tests that claim to show too much are refused.
    """
    check_marks(items)
    kept, left_out = [], []
    for item in items:
        callspec = getattr(item, "callspec", None)
        on_neo4j = callspec is not None and callspec.params.get("graph_server") == "neo4j"
        if on_neo4j:
            item.add_marker(pytest.mark.neo4j)
        heavy = item.path.relative_to(config.rootpath / "tests").parts[0] in HEAVY
        if on_neo4j and heavy and not config.getoption("--all-graphs"):
            left_out.append(item)
        else:
            kept.append(item)
    items[:] = kept
    config.stash[LEFT_OUT] = len(left_out)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the outcome of tests that show requirements."""
    report = yield
    record(item, report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write those outcomes where they are asked for."""
    write_results(session.config)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say loudly when the Neo4j half did not run, and what was left to the full run."""
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.line(
            f"{left_out} tests of the whole engine ran on ArcadeDB only; "
            "`make test-full` runs them on Neo4j too"
        )
    pool = config.stash.get(POOL, None)
    if pool is None or pool.neo4j_problem is None:
        return
    terminalreporter.section("NEO4J DID NOT RUN", sep="!", red=True, bold=True)
    terminalreporter.line(
        "The tests on Neo4j were left out: this run says nothing about it.", red=True, bold=True
    )
    terminalreporter.line(f"Why: {pool.neo4j_problem}", red=True)


@pytest.fixture(scope="session")
def server_pool(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[ServerPool]:
    pool = ServerPool(tmp_path_factory.mktemp("servers"))
    pytestconfig.stash[POOL] = pool
    yield pool
    pool.stop()


@pytest.fixture(scope="session")
def redis_server(server_pool: ServerPool) -> RedisServer:
    """A private Redis or Valkey; `kill()` and `start()` keep its data and port."""
    return server_pool.redis()


@pytest.fixture(scope="session", params=["arcadedb", "neo4j"])
def graph_server(request: pytest.FixtureRequest, server_pool: ServerPool) -> GraphServer:
    """A graph server; `kill()` and `start()` keep its data and port."""
    kind: Literal["arcadedb", "neo4j"] = request.param
    try:
        return server_pool.graph(kind)
    except NoNeo4jError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs a Neo4j: {error}", pytrace=False)
        pytest.skip(f"NO NEO4J: {error}")


@pytest.fixture
def clean_redis(redis_server: RedisServer) -> RedisServer:
    """The Redis, running and empty."""
    if not redis_server.running:
        redis_server.start()
    redis_server.flush()
    return redis_server


@pytest.fixture
def clean_graph(graph_server: GraphServer) -> GraphServer:
    """The graph server, running and without nodes."""
    if not graph_server.running:
        graph_server.start()
    graph_server.wipe()
    return graph_server
