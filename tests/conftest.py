"""Real servers for every test that asks for them.

`redis_server` and `graph_server` (once for ArcadeDB, once for Neo4j) live as long as the run;
`clean_redis` and `clean_graph` are the same, emptied before the test. A run without a Neo4j skips
its half and says so loudly; with ``CI`` set that is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import settings

from tests.servers.graph import GraphServer
from tests.servers.neo4j_source import NoNeo4jError
from tests.servers.pool import ServerPool
from tests.servers.redis import RedisServer
from tests.tracing import Outcomes, check_marks, pass_on

HEAVY = ("bench", "cli", "faults", "isolation", "properties", "retrieval_search")
"""Folders whose tests look at the engine, not at a graph; on ArcadeDB alone unless asked."""

LEFT_OUT = pytest.StashKey[int]()
NO_NEO4J = "NO NEO4J: "

# time limits of single examples would say more about the machine than about the code
settings.register_profile("project", deadline=None)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-graphs",
        action="store_true",
        help=f"run the tests of {', '.join(HEAVY)} on Neo4j too (make test-full)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        config.pluginmanager.register(Outcomes())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what runs on Neo4j, keep the heavy folders to one graph unless asked.

    Tests that claim to show too much are refused.
    """
    check_marks(items)
    kept, left_out = [], []
    for item in items:
        pass_on(item)
        graph = _graph_of(item)
        if graph == "neo4j":
            item.add_marker(pytest.mark.neo4j)
        heavy = item.path.relative_to(config.rootpath / "tests").parts[0] in HEAVY
        if graph == "neo4j" and heavy and not config.getoption("--all-graphs"):
            left_out.append(item)
        else:
            kept.append(item)
    items[:] = kept
    config.stash[LEFT_OUT] = len(left_out)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that sums up what this one left out."""
    if _is_worker(session.config):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear what a worker left out; each collects everything."""
    left_out = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[LEFT_OUT] = left_out


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
    problem = next(filter(None, map(_no_neo4j, terminalreporter.getreports("skipped"))), None)
    if problem is None:
        return
    terminalreporter.section("NEO4J DID NOT RUN", sep="!", red=True, bold=True)
    terminalreporter.line(
        "The tests on Neo4j were left out: this run says nothing about it.", red=True, bold=True
    )
    terminalreporter.line(f"Why: {problem}", red=True)


def _graph_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("graph_server")


def _is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one, which gathers the outcomes."""
    return hasattr(config, "workerinput")


def _no_neo4j(report: pytest.TestReport) -> str | None:
    """Why there is no Neo4j, when a test was skipped for that."""
    _, _, reason = report.longrepr
    _, found, problem = str(reason).partition(NO_NEO4J)
    return problem if found else None


@pytest.fixture(scope="session")
def server_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerPool]:
    pool = ServerPool(tmp_path_factory.mktemp("servers"))
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
        pytest.skip(f"{NO_NEO4J}{error}")


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
