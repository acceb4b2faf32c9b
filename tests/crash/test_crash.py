"""The short form of the crash harness: each part killed once on each graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.harness import LEAST_ACKS, Harness, Target
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

pytestmark = [pytest.mark.servers, pytest.mark.crash, pytest.mark.timeout(900)]


def test_nothing_acknowledged_is_lost_doubled_or_brought_back(
    clean_redis: RedisServer, clean_graph: GraphServer, tmp_path: Path
) -> None:
    if not clean_graph.killable:
        pytest.skip("this graph server is not ours to kill")
    rounds = Harness(clean_redis, clean_graph, tmp_path, seed=20261130).play(Target)
    for one in rounds:
        assert not one.findings.any, (one.target, one.findings)
        assert one.acks >= LEAST_ACKS, one.target
    assert any(one.in_batch for one in rounds)
