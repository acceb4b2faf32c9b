"""Every command on real servers: its answer for machines, its exit code, its view for people."""

import json

import pytest

from orchestrata_memory.cli.exits import ExitCode

pytestmark = pytest.mark.servers


def answer(outcome, code=ExitCode.OK):
    assert outcome.code == code, outcome.out + outcome.err
    return outcome.json


def test_store_and_get_carry_everything(memory):
    metadata = {"importance": 0.5, "speaker": "Zoë"}

    stored = answer(
        memory(
            *(
                "store",
                "Déjà vu: 猫 sat on \n the \u202emat",
                "--key",
                "k/1",
                "--tag",
                "a",
                "--tag",
                "b",
            ),
            *("--metadata", json.dumps(metadata), "--classification", "shared", "--json"),
        )
    )["entry"]
    got = answer(memory("get", "k/1", "--json"))["entry"]

    assert got["content"] == "Déjà vu: 猫 sat on \n the \u202emat"
    assert got["tags"] == ["a", "b"]
    assert got["metadata"] == metadata
    assert got["classification"] == "shared"
    assert got["session_id"] == "s-1"
    assert got["project_id"] == "p-1"
    assert got["volk_id"] == "USR:LOCAL"
    assert stored["created_at"] == got["created_at"]


def test_a_write_that_the_graph_takes_does_not_wait(memory):
    assert answer(memory("store", "not waiting", "--json"))["waits_for_graph"] is False


def test_an_unhappy_key_is_shown_as_it_is(memory):
    shown = memory("store", "x", "--key", "[/red] :smile:")

    assert shown.code == ExitCode.OK
    assert "stored [/red] :smile:" in shown.out
    assert "Audit trail of [/red]" in memory("audit", "[/red] :smile:").out


def test_content_comes_from_standard_input(memory):
    stored = answer(memory("store", "-", "--json", stdin=b"line one\nline two"))

    assert stored["entry"]["content"] == "line one\nline two"
    key = stored["entry"]["key"]
    updated = answer(memory("update", key, "--content", "-", "--json", stdin=b"line three"))
    assert updated["entry"]["content"] == "line three"
    assert updated["entry"]["version"] == 2


def test_get_shows_the_vector_only_to_who_asks(memory):
    memory("store", "vectors are long", "--key", "vector")

    assert "embedding" not in answer(memory("get", "vector", "--json"))["entry"]
    with_vector = answer(memory("get", "vector", "--embedding", "--json"))["entry"]
    assert len(with_vector["embedding"]) == 384


def test_search_finds_filters_and_explains(memory):
    memory("store", "the turbine hall is flooded", "--key", "flood", "--session", "s-search")
    memory("store", "the canteen serves lentils", "--key", "lunch", "--session", "s-search")

    found = answer(memory("search", "flooded turbine", "--explain", "--json"))
    elsewhere = memory("search", "flooded turbine", "--in-session", "nowhere", "--json")
    shown = memory("search", "flooded turbine", "--explain")

    assert found["results"][0]["key"] == "flood"
    assert 0 < found["results"][0]["relevance_score"] <= 1
    assert found["results"][0]["explanation"]["tier"] == "hot"
    assert answer(elsewhere, ExitCode.NOTHING) == {
        "count": 0,
        "results": [],
        "degraded": None,
    }
    assert "flood" in shown.out
    assert "recency" in shown.out


def test_find_by_all_or_any_tags_and_by_dates(memory):
    memory("store", "one", "--key", "t1", "--tag", "red", "--tag", "round")
    memory("store", "two", "--key", "t2", "--tag", "red")

    both = answer(memory("find", "--tag", "red", "--tag", "round", "--json"))
    either = answer(memory("find", "--tag", "red", "--tag", "round", "--any", "--json"))
    past = memory("find", "--tag", "red", "--to", "2001-01-01", "--json")

    assert [entry["key"] for entry in both["results"]] == ["t1"]
    assert [entry["key"] for entry in either["results"]] == ["t2", "t1"]
    assert answer(past, ExitCode.NOTHING)["count"] == 0


def test_update_changes_only_what_is_given(memory):
    memory("store", "before", "--key", "changing", "--tag", "keep", "--metadata", '{"a": 1}')

    content = answer(memory("update", "changing", "--content", "after", "--json"))["entry"]
    cleared = answer(memory("update", "changing", "--clear-tags", "--json"))["entry"]

    assert (content["content"], content["tags"]) == ("after", ["keep"])
    assert (cleared["content"], cleared["tags"], cleared["metadata"]) == ("after", [], {"a": 1})


def test_sharing_and_delegating(memory):
    memory("store", "between us", "--key", "secret")

    denied = memory("get", "secret", "--as", "ENG:BETA", "--json")
    shared = answer(memory("share", "secret", "ENG:BETA", "--json"))
    read = memory("get", "secret", "--as", "ENG:BETA", "--json")
    delegated = answer(memory("delegate", "ENG:GAMMA", "--as", "ENG:BETA", "--json"))
    through = memory("get", "secret", "--as", "ENG:GAMMA", "--json")
    revoked = answer(memory("revoke", "ENG:GAMMA", "--as", "ENG:BETA", "--json"))
    again = memory("revoke", "ENG:GAMMA", "--as", "ENG:BETA", "--json")
    after = memory("get", "secret", "--as", "ENG:GAMMA", "--json")
    unshared = answer(memory("unshare", "secret", "ENG:BETA", "--json"))

    assert denied.code == ExitCode.DENIED
    assert denied.json["error"]["type"] == "MemoryAccessDeniedError"
    assert "between us" not in denied.out + denied.err
    assert shared["entry"]["shared_with"] == ["ENG:BETA"]
    assert answer(read)["entry"]["content"] == "between us"
    assert delegated["delegation"]["delegate"] == "ENG:GAMMA"
    assert answer(through)["entry"]["content"] == "between us"
    assert revoked["revoked"] is True
    assert again.code == ExitCode.NOTHING
    assert after.code == ExitCode.DENIED
    assert unshared["entry"]["shared_with"] == []


def test_summarize_fits_its_budget_and_can_be_kept(memory):
    for number in range(8):
        memory(
            "store", f"Fact {number}: valve {number} opens at {number} bar.", "--session", "s-sum"
        )

    summary = answer(memory("summarize", "s-sum", "--max-tokens", "32", "--json"))
    kept = answer(memory("summarize", "s-sum", "--save", "--json"))
    lineage = answer(memory("lineage", kept["key"], "--json"))
    nothing = memory("summarize", "s-empty", "--json")

    assert 0 < summary["token_count"] <= 32
    assert summary["source_count"] == len(summary["source_keys"]) > 0
    assert summary["strategy"] == "relevance"
    assert {source["entry"]["key"] for source in lineage["sources"]} == set(kept["source_keys"])
    assert answer(nothing, ExitCode.NOTHING)["source_count"] == 0


def test_inject_fills_a_budget(memory):
    memory("store", "The bridge opens for ships at noon.", "--session", "s-inject")

    injected = answer(memory("inject", "cross the bridge with a ship", "--budget", "64", "--json"))

    context = injected["memory_context"]
    assert context["token_budget"] == 64
    assert context["tokens_used"] + injected["remaining"] == 64
    assert context["injected_keys"]


def test_audit_tells_who_did_what(memory):
    memory("store", "watched", "--key", "watched")
    memory("get", "watched", "--as", "ENG:BETA")

    trail = answer(memory("audit", "watched", "--json"))
    shown = memory("audit", "watched")
    foreign = memory("audit", "watched", "--as", "ENG:BETA", "--json")

    assert [(r["operation"], r["volk_id"], r["outcome"]) for r in trail["records"]] == [
        ("store", "USR:LOCAL", "allowed"),
        ("retrieve", "ENG:BETA", "denied"),
    ]
    assert "can_read_memory" in shown.out
    assert foreign.code == ExitCode.DENIED


def test_closing_a_session_moves_it_and_its_memories_are_related(memory):
    memory("store", "first of the closed", "--key", "c1", "--session", "s-close")
    memory("store", "second of the closed", "--key", "c2", "--session", "s-close")

    closed = answer(memory("close-session", "s-close", "--json"))
    related = answer(memory("related", "c1", "--json"))
    got = answer(memory("get", "c1", "--json"))

    assert closed == {"session_id": "s-close", "migrated": 2, "failed": 0, "reasons": []}
    assert "c2" in [item["entry"]["key"] for item in related["results"]]
    assert got["entry"]["content"] == "first of the closed"


def test_what_is_not_there(memory):
    missing = memory("get", "missing", "--json")
    deleted = memory("delete", "missing", "--json")

    assert missing.code == ExitCode.NOTHING
    assert missing.json["error"]["type"] == "MemoryNotFoundError"
    assert answer(deleted, ExitCode.NOTHING) == {
        "key": "missing",
        "deleted": False,
        "waits_for_graph": False,
    }
    assert memory("update", "missing", "--content", "x").code == ExitCode.NOTHING
    assert memory("share", "missing", "ENG:BETA").code == ExitCode.NOTHING
    assert memory("audit", "never-seen", "--as", "USR:LOCAL").code == ExitCode.NOTHING


def test_deleting_is_for_good(memory):
    memory("store", "short-lived", "--key", "gone")

    assert answer(memory("delete", "gone", "--json"))["deleted"] is True
    assert memory("get", "gone").code == ExitCode.NOTHING


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("store", "   "), ExitCode.USAGE),
        (("store", "x", "--metadata", '{"relevance": 7}'), ExitCode.USAGE),
        (("store", "x", "--tag", "\n"), ExitCode.USAGE),
        (("search", "x", "--limit", "0"), ExitCode.USAGE),
        (("search", "x", "--from", "2025-02-01", "--to", "2025-01-01"), ExitCode.USAGE),
        (("summarize", "s-1", "--max-tokens", "3"), ExitCode.USAGE),
        (("store", "x", "--as", "ENG:STRANGER"), ExitCode.DENIED),
        (("store", "x", "--as", "ENG:BETA", "--classification", "system"), ExitCode.DENIED),
        (("share", "t1", "ENG:STRANGER"), ExitCode.DENIED),
    ],
)
def test_what_the_engine_refuses_is_one_clear_line(memory, arguments, code):
    outcome = memory(*arguments)

    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in outcome.err
    assert memory(*arguments, "--json").json["error"]["message"]


def test_a_taken_key_is_refused_and_the_same_again_is_not(memory):
    first = answer(memory("store", "mine", "--key", "taken", "--json"))
    same = answer(memory("store", "mine", "--key", "taken", "--json"))
    other = memory("store", "yours", "--key", "taken", "--json")

    assert first["entry"]["created_at"] == same["entry"]["created_at"]
    assert other.code == ExitCode.USAGE
    assert other.json["error"]["type"] == "MemoryKeyExistsError"


def test_servers_linger_and_can_be_stopped(memory):
    memory("store", "durable", "--key", "durable")

    running = answer(memory("servers", "status", "--json"))["servers"]
    stopped = answer(memory("servers", "stop", "--json"))
    again = memory("servers", "stop", "--json")
    after = memory("servers", "status", "--json")

    assert {name: state["phase"] for name, state in running.items()} == {
        "redis": "ready",
        "graph": "ready",
    }
    assert sorted(stopped["stopped"]) == ["graph", "redis"]
    assert again.code == ExitCode.NOTHING
    assert answer(after, ExitCode.NOTHING)["servers"]["redis"]["phase"] == "stopped"
    assert answer(memory("get", "durable", "--json"))["entry"]["content"] == "durable"
