"""Files become memories once, however often they are ingested."""

import json

import pytest

from orchestrata_memory.cli.exits import ExitCode

pytestmark = pytest.mark.servers


@pytest.fixture
def chat(tmp_path):
    lines = [
        {"session": f"talk-{number % 3}", "speaker": "Ana", "text": f"Remark {number} on trains"}
        for number in range(12)
    ]
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_a_second_run_stores_nothing_twice(memory, chat):
    first = memory("ingest", chat, "--json")
    second = memory("ingest", chat, "--json")

    assert first.code == second.code == ExitCode.OK
    assert (first.json["stored"], first.json["already_there"]) == (12, 0)
    assert (second.json["stored"], second.json["already_there"]) == (0, 12)
    assert first.json["sessions"] == 3
    found = memory("find", "--in-session", "talk-1", "--limit", "100", "--json").json
    assert found["count"] == 4
    assert found["results"][0]["metadata"]["speaker"] == "Ana"


def test_what_was_said_is_found_after_closing_the_sessions(memory, chat):
    closed = memory("ingest", chat, "--close-sessions", "--json").json
    found = memory("search", "remark 7 on trains", "--json").json

    assert closed["closed_sessions"] == 3
    assert closed["migrated"] in {0, 12}  # 12 unless a test before closed them
    assert found["results"][0]["content"] == "Remark 7 on trains"


def test_a_document_goes_into_a_session_named_after_it(memory, tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("# Boats\n\nThe red boat leaks.\n\n# Trains\n\nThe night train is late.\n")

    env = {**memory.keywords["env"], "ORCHESTRATA_MEMORY_SESSION": ""}
    report = memory("ingest", file, "--keys", "generated", env=env)

    assert report.code == ExitCode.OK
    assert "notes.md" in report.out
    found = memory("find", "--in-session", "file:notes.md", "--json").json
    assert found["count"] == 2


def test_the_caller_names_session_and_project_where_the_file_does_not(memory, tmp_path):
    file = tmp_path / "plain.txt"
    file.write_text("A single paragraph about lighthouses.")

    memory("ingest", file, "--session", "s-given", "--project", "p-given")

    (entry,) = memory("find", "--in-session", "s-given", "--json").json["results"]
    assert entry["project_id"] == "p-given"


def test_a_key_of_somebody_else_is_reported_and_the_rest_is_stored(memory, tmp_path):
    file = tmp_path / "shared.jsonl"
    file.write_text(json.dumps({"text": "Only once"}) + "\n")
    assert memory("ingest", file).code == ExitCode.OK
    file.write_text(json.dumps({"text": "Only once"}) + "\n" + json.dumps({"text": "New"}) + "\n")

    other = memory("ingest", file, "--as", "ENG:BETA", "--json")

    assert other.code == ExitCode.USAGE
    assert other.json["stored"] == 1
    assert len(other.json["refused"]) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.jsonl", b'{"text": "fine"}\n{"text": \n', "line 2"),
        ("latin.txt", "café".encode("latin-1"), "UTF-8"),
        ("empty.md", b"", "no text"),
    ],
)
def test_a_faulty_file_is_named_and_nothing_is_stored(memory, tmp_path, name, content, said):
    file = tmp_path / name
    file.write_bytes(content)
    before = memory("find", "--limit", "1000", "--json").json["count"]

    outcome = memory("ingest", file, "--session", "s-faulty", "--json")

    assert outcome.code == ExitCode.USAGE
    assert said in outcome.json["error"]["message"]
    assert name in outcome.json["error"]["message"]
    assert memory("find", "--limit", "1000", "--json").json["count"] == before
