"""Reports say what was measured, under the names that others rely on."""

import numpy as np
import pytest

from orchestrata_memory.bench.intents import precision_of
from orchestrata_memory.bench.latency import LatencyReport
from orchestrata_memory.bench.limits import ROWS
from orchestrata_memory.bench.locomo import LocomoReport, Target
from orchestrata_memory.bench.metrics import Timing
from orchestrata_memory.bench.neighbours import recall_of
from orchestrata_memory.bench.searching import Question, Reply
from orchestrata_memory.models import MemoryScope


def timing(p95_ms):
    return Timing(samples=9, p50_ms=p95_ms / 2, p95_ms=p95_ms, p99_ms=p95_ms * 2, mean_ms=p95_ms)


def reply(about, keys, seconds=0.01):
    question = Question(text="?", scope=MemoryScope(), about=about)
    return Reply(question=question, keys=keys, seconds=seconds)


def test_latency_names_its_figures_and_what_is_over_a_limit():
    rows = {name: timing(0.5) for name in ROWS} | {
        "hot_store": timing(10.5),
        "cold_search": timing(80),
        "redis_roundtrip": timing(0.2),
        "graph_roundtrip": timing(1.2),
    }
    report = LatencyReport(backend="b", rows=rows, stores_per_s=900)

    document = report.document()

    assert {
        "hot_store_p95_ms",
        "hot_retrieve_p95_ms",
        "hot_search_p95_ms",
        "cold_retrieve_p95_ms",
        "cold_search_p95_ms",
        "summarize_p95_ms",
        "stores_per_s",
        "redis_roundtrip_p95_ms",
        "graph_roundtrip_p95_ms",
        "backend",
    } <= document.keys()
    assert document["hot_store_p95_ms"] == 10.5
    assert document["hot_search_p50_ms"] == 0.25
    assert document["misses"] == ["hot_store"]
    assert document["short_of_ours"] == ["hot_store", "cold_search", "stores_per_s"]


@pytest.mark.traces("REQ-010-051", "REQ-010-052", "REQ-010-053")
def test_the_limits_of_the_hot_tier_are_those_required():
    assert ROWS["hot_store"].required_ms == 10
    assert ROWS["hot_retrieve"].required_ms == 5
    assert ROWS["hot_search"].required_ms == 50
    at_the_limit = {"hot_store": timing(10), "hot_retrieve": timing(5), "hot_search": timing(50)}
    over_it = {"hot_store": timing(10.1), "hot_retrieve": timing(5.1), "hot_search": timing(50.1)}
    assert LatencyReport(backend="b", rows=at_the_limit).misses() == []
    assert LatencyReport(backend="b", rows=over_it).misses() == list(over_it)


@pytest.mark.traces("REQ-010-054", "REQ-010-055")
def test_the_limits_of_the_cold_tier_are_those_required():
    assert ROWS["cold_retrieve"].required_ms == 50
    assert ROWS["cold_search"].required_ms == 200
    over_it = {"cold_retrieve": timing(50.1), "cold_search": timing(200.1)}
    assert LatencyReport(backend="b", rows=over_it).misses() == list(over_it)


def test_locomo_counts_by_category_and_over_all():
    report = LocomoReport(
        backend="b",
        tier="hot",
        replies=[
            reply(Target(category=1, keys=frozenset("ab")), list("xxxxxa")),
            reply(Target(category=4, keys=frozenset("c")), list("c")),
            reply(Target(category=4, keys=frozenset("d")), list("x"), seconds=0.03),
        ],
    )

    document = report.document()

    assert document["n"] == 3
    assert document["any_at_5"] == pytest.approx(1 / 3, abs=1e-4)
    assert document["any_at_10"] == pytest.approx(2 / 3, abs=1e-4)
    assert document["fraction_at_10"] == pytest.approx((0.5 + 1 + 0) / 3, abs=1e-4)
    assert document["query_p95_ms"] == pytest.approx(30)
    assert document["by_category"]["4"]["any_at_10"] == 0.5


def test_intents_divide_by_ten():
    replies = [reply("hello", ["1", "2", "3"]), reply("bye", ["3"] * 10)]

    assert precision_of(replies, {"1": "hello", "2": "bye", "3": "hello"}) == pytest.approx(0.1)


def test_vector_recall_counts_what_is_as_near_as_the_tenth():
    vectors = np.eye(12, dtype=np.float32)
    query = np.zeros(12, dtype=np.float32)
    query[:9] = np.linspace(1, 0.5, 9)
    query[9:] = 0.1  # the tenth place is shared by three
    held = ([f"k{number}" for number in range(12)], vectors)

    assert recall_of([f"k{number}" for number in (*range(9), 11)], held, query) == 1
    assert recall_of([f"k{number}" for number in range(8)], held, query) == pytest.approx(0.8)
    assert recall_of(["nothing"], held, query) == 0
    assert recall_of([], ([], np.zeros((0, 12), np.float32)), query) == 1
