"""A user's mistake is one clear line and an exit code, never a traceback."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from orchestrata_memory import errors
from orchestrata_memory.cli import app
from orchestrata_memory.cli.exits import ExitCode, exit_code_of
from orchestrata_memory.tokens.registry import CounterRegistry
from tests.cli.runner import run

MISTAKES = [
    (("serch", "x"), "No such command"),
    (("store",), "content"),
    (("store", "x", "--classification", "secret"), "classification"),
    (("store", "x", "--metadata", "{"), "not JSON"),
    (("store", "x", "--metadata", "[1]"), "object"),
    (("store", "x", "--metadata", '{"n": ' + "1" * 5000 + "}"), "digits"),
    (("store", "x", "--metadata", "[" * 100_000), "deeply"),
    (("update", "k"), "nothing to change"),
    (("update", "k", "--tag", "a", "--clear-tags"), "exclude each other"),
    (("search", "x", "--from", "yesterday"), "ISO 8601"),
    (("search", "x", "--limit", "many"), "limit"),
    (("delegate", "ENG:BETA", "--expires-at", "soon"), "ISO 8601"),
    (("bench", "scale", "--sizes", "10,5"), "rising"),
    (("bench", "scale", "--sizes", "a"), "numbers"),
    (("bench", "locomo", "/no/such/file.json"), "file"),
    (("bench", "latency", "--backend", "http://x"), "neo4j://"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_a_mistake_is_one_line_on_standard_error(arguments, said):
    outcome = run(*arguments)

    assert outcome.code == ExitCode.USAGE
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert said in outcome.err


@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_a_mistake_with_json_is_one_document(arguments, said):
    outcome = run(*arguments, "--json")

    assert outcome.code == ExitCode.USAGE
    assert set(outcome.json) == {"error"}
    assert set(outcome.json["error"]) == {"type", "message"}
    assert said in outcome.json["error"]["message"]


def test_standard_input_that_is_not_utf8_is_a_mistake():
    outcome = run("store", "-", stdin=b"\xff\xfe")

    assert outcome.code == ExitCode.USAGE
    assert "UTF-8" in outcome.err


def test_a_wrong_configuration_names_the_field(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text("runtime:\n  memory_engine:\n    redis:\n      uri: redis://x\n")

    outcome = run("store", "x", "--config", file, "--json")

    assert outcome.code == ExitCode.CONFIGURATION
    assert "runtime.memory_engine.redis.uri" in outcome.json["error"]["message"]


def test_an_unexpected_error_says_that_it_is_a_bug(monkeypatch):
    def broken(options):
        raise RuntimeError("the wheel came off")

    monkeypatch.setattr("orchestrata_memory.cli.effective.effective", broken)

    outcome = run("config", "--json")

    assert outcome.code == ExitCode.BUG
    assert outcome.json["error"]["type"] == "RuntimeError"
    assert "report" in outcome.json["error"]["message"]
    assert "Traceback" not in outcome.err


def test_the_traceback_is_there_for_who_asks(monkeypatch):
    def broken(options):
        raise RuntimeError("the wheel came off")

    monkeypatch.setattr("orchestrata_memory.cli.effective.effective", broken)

    assert "Traceback" in run("config", env={app.DEBUG_VARIABLE: "1"}).err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.MemoryNotFoundError("k"), ExitCode.NOTHING),
        (errors.MemoryValidationError("content", "is blank"), ExitCode.USAGE),
        (errors.MemoryKeyExistsError("k"), ExitCode.USAGE),
        (errors.MemoryAccessDeniedError("V", "can_read_memory", "k"), ExitCode.DENIED),
        (errors.MemoryBackpressureError(10), ExitCode.UNAVAILABLE),
        (errors.MemoryUnavailableError("Redis", "down"), ExitCode.UNAVAILABLE),
        (errors.MemoryConfigurationError("no"), ExitCode.CONFIGURATION),
        (errors.MemoryGovernanceError("no"), ExitCode.CONFIGURATION),
        (FileNotFoundError("f"), ExitCode.USAGE),
        (errors.MemoryLifecycleError("no"), ExitCode.BUG),
        (ZeroDivisionError(), ExitCode.BUG),
    ],
)
def test_every_error_has_its_exit_code(error, code):
    assert exit_code_of(error) is code


def test_help_names_every_exit_code_and_loads_no_model():
    script = (
        "import sys; from orchestrata_memory.cli.app import main; code = main(['--help']); "
        "heavy = {'torch', 'sentence_transformers', 'numpy', 'neo4j', 'redis', 'pyswip'}; "
        "sys.exit(code or ', '.join(heavy & set(sys.modules)) or 0)"
    )

    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )

    assert shown.returncode == 0, shown.stderr
    for code in ExitCode:
        if code is not ExitCode.INTERRUPTED:
            assert str(code.value) in shown.stdout.split("Exit codes")[1]


@pytest.mark.parametrize(
    "name",
    [
        "demo",
        "doctor",
        "ingest",
        "store",
        "get",
        "search",
        "find",
        "related",
        "summarize",
        "update",
        "share",
        "unshare",
        "delegate",
        "revoke",
        "delete",
        "close-session",
        "audit",
        "inject",
        "lineage",
        "config",
        "dead-letters",
    ],
)
def test_every_command_has_help_and_takes_json(name):
    outcome = run(name, "--help")

    assert outcome.code == 0
    assert "--json" in outcome.out
    assert "--config" in outcome.out


@pytest.mark.parametrize("arguments", [(), ("bench",), ("servers",)])
def test_a_command_alone_shows_its_help_and_no_error(arguments):
    outcome = run(*arguments)

    assert outcome.code == ExitCode.USAGE
    assert "Usage: orchestrata-memory" in outcome.out + outcome.err
    assert "\nerror:" not in f"\n{outcome.out}\n{outcome.err}"


def test_the_version_is_that_of_the_package():
    outcome = run("--version")

    assert outcome.code == 0
    assert outcome.out == f"orchestrata-memory {version('orchestrata-memory')}\n"


def test_help_names_the_providers_and_what_counts_without_one():
    shown = " ".join(run("summarize", "--help").out.replace("│", " ").split())

    for provider in CounterRegistry().providers:
        assert provider in shown
    assert "or none: words" in shown


@pytest.mark.parametrize("name", ["search", "find"])
def test_filters_are_options_of_every_command_that_looks(name):
    shown = run(name, "--help").out

    for option in ("session", "task", "project", "portfolio"):
        assert f"--in-{option}" in shown
    assert "--from" in shown
    assert "--of" in shown


@pytest.mark.parametrize("name", ["latency", "locomo", "intents", "scale"])
def test_every_bench_has_help_and_takes_json(name):
    assert "--json" in run("bench", name, "--help").out
