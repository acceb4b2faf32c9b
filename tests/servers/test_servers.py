"""The servers of the tests do what the crash tests build on."""

from __future__ import annotations

import pytest

from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.servers


def test_redis_keeps_acknowledged_writes_over_sigkill(clean_redis: RedisServer) -> None:
    with clean_redis.client() as client:
        assert client.config_get("appendfsync")["appendfsync"] == "always"
        client.set("a", "1")
    port = clean_redis.port
    clean_redis.kill()
    clean_redis.start()
    assert clean_redis.port == port
    with clean_redis.client() as client:
        assert client.get("a") == "1"


def test_graph_keeps_acknowledged_writes_over_sigkill(clean_graph: GraphServer) -> None:
    if not clean_graph.killable:
        pytest.skip("this graph server is not ours to kill")
    with clean_graph.driver() as driver:
        driver.execute_query("CREATE (:Probe {n: 1})", database_=clean_graph.database)
    clean_graph.kill()
    clean_graph.start()
    assert clean_graph.count_nodes() == 1
    clean_graph.wipe()
    assert clean_graph.count_nodes() == 0
