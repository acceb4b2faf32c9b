"""The demo, with the real model, rules and servers: its facts are read back from the servers."""

import pytest

from orchestrata_memory.cli.demo import story
from tests.cli.runner import run

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def told():
    outcome = run("demo", "--json")
    assert outcome.code == 0, outcome.err
    return outcome.json


def test_every_memory_is_in_redis_when_its_store_returns(told):
    assert told["store"]["hot_entries"] == told["store"]["memories"] == len(story.LINES)
    assert 86_000 < told["store"]["hot_ttl_seconds"] <= 86_400


@pytest.mark.traces("REQ-010-015", "REQ-010-016", "REQ-010-036")
def test_a_paraphrase_and_an_identifier_are_both_found(told):
    by_meaning = {hit["key"]: hit for hit in told["search_by_meaning"]["results"]}
    by_word = told["search_by_word"]["results"]

    assert by_meaning[story.TICKETS_KEY]["terms"] == []
    assert story.BY_WORD in by_word[0]["content"]
    assert told["models"]["model"] == "all-MiniLM-L6-v2"
    assert told["models"]["document_backend"] == "sentence-transformers"


def test_a_denial_says_why_and_is_on_record(told):
    denial = told["denial"]

    assert denial["denied"] is True
    assert denial["rule"] == "can_read_memory"
    assert "private" in denial["reason"]
    assert denial["readable_after_share"] is True
    assert [(item["operation"], item["outcome"]) for item in denial["audit"]] == [
        ("store", "allowed"),
        ("retrieve", "denied"),
        ("share", "allowed"),
        ("retrieve", "allowed"),
    ]


def test_the_summary_fits_by_another_count_too(told):
    summary = told["summary"]

    assert summary["tokens_recounted"] == summary["tokens_used"] <= summary["token_budget"]
    assert summary["tokens_used"] >= 0.95 * summary["token_budget"]
    assert summary["source_count"] == len(summary["source_keys"]) > 1
    assert summary["counter"].startswith("tiktoken")


@pytest.mark.traces("REQ-010-029", "REQ-010-032")
def test_closing_the_session_moves_everything_to_the_graph_linked(told):
    closed, count = told["close"], len(story.LINES)

    assert closed["hot_before"] == count
    assert closed["hot_after"] == closed["outbox_after"] == closed["failed"] == 0
    assert closed["migrated"] == closed["graph_memories"] == closed["graph_embeddings"] == count
    links = closed["relationships"]
    for kind in ("BELONGS_TO", "CREATED_BY", "RELATES_TO", "PART_OF"):
        assert links[kind] == count
    assert links["SHARED_WITH"] == 1


@pytest.mark.traces("REQ-010-033")
def test_a_later_session_finds_and_promotes_what_was_learned(told):
    later = told["later"]

    assert story.LESSON_KEY in [hit["key"] for hit in later["results"]]
    assert all(hit["tier"] == "cold" for hit in later["results"])
    assert len(later["replicas"]) == later["count"]
    assert all(name.startswith("orchestrata:memory:follow-up-4711:") for name in later["replicas"])
    assert 86_000 < later["replica_ttl_seconds"] <= 86_400


@pytest.mark.traces("REQ-010-042", "REQ-010-044")
def test_the_packet_carries_what_matters_within_the_budget(told):
    context, remaining = told["injection"]["memory_context"], told["injection"]["remaining"]

    assert set(context) == {"injected_keys", "token_budget", "tokens_used", "strategy", "summary"}
    assert context["token_budget"] == story.INJECTION_TOKENS
    assert context["tokens_used"] + remaining == story.INJECTION_TOKENS
    assert story.LESSON_KEY in context["injected_keys"]
    assert context["summary"]


def test_it_says_what_happened_where_and_how_long_it_took(told):
    assert len(told["steps"]) == 9
    assert all(step["tier"] and step["seconds"] > 0 for step in told["steps"])
    assert told["seconds"] >= sum(step["seconds"] for step in told["steps"])
    assert told["data_dir"] is None
