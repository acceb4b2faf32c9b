"""The doctor finds what is wrong, says what to do, and survives a bare machine."""

import asyncio
from pathlib import Path

import pytest

from orchestrata_memory.cli.doctor import machine, models, report
from orchestrata_memory.cli.doctor.check import Status
from orchestrata_memory.cli.doctor.servers import judge_graph, judge_redis
from orchestrata_memory.config.settings import (
    EmbeddingSettings,
    GovernanceSettings,
    MemoryEngineSettings,
    SummarySettings,
)
from tests.cli.runner import run

GOOD = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}


@pytest.mark.parametrize(
    ("info", "config", "status"),
    [
        ({"redis_version": "7.0.15"}, GOOD, Status.OK),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, GOOD, Status.OK),
        ({"redis_version": "6.2.0"}, GOOD, Status.FAIL),
        ({"redis_version": "7.0.0", "cluster_enabled": 1}, GOOD, Status.FAIL),
        ({"redis_version": "7.0.0"}, GOOD | {"maxmemory-policy": "allkeys-lru"}, Status.FAIL),
        ({"redis_version": "7.0.0"}, GOOD | {"maxmemory-policy": "volatile-ttl"}, Status.WARN),
        ({"redis_version": "7.0.0"}, GOOD | {"appendfsync": "everysec"}, Status.WARN),
        ({"redis_version": "7.0.0"}, GOOD | {"appendonly": "no"}, Status.WARN),
    ],
)
def test_redis_is_judged_by_version_mode_eviction_and_durability(info, config, status):
    check = judge_redis(info, config)

    assert check.status is status
    assert bool(check.fix) == (status is not Status.OK)


@pytest.mark.parametrize(
    ("agent", "status", "dialect"),
    [
        ("Neo4j/5.26.12", Status.OK, "neo4j"),
        ("Neo4j/2025.01.0", Status.OK, "neo4j"),
        ("Neo4j/4.4.9", Status.FAIL, "neo4j"),
        ("Neo4j/5.0.0 compatible, ArcadeDB 26.10.2", Status.OK, "arcadedb"),
    ],
)
def test_the_graph_is_judged_by_product_and_version(agent, status, dialect):
    check = judge_graph(agent, "5.4")

    assert check.status is status
    assert dialect in check.detail


def _nowhere(name):
    return None


def test_on_a_bare_machine_it_names_everything_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for module in (machine, models):
        monkeypatch.setattr(module, "installed", _nowhere)
    monkeypatch.setattr("orchestrata_memory.embedding.locate.find_spec", _nowhere)
    monkeypatch.setattr("orchestrata_memory.embedded.programs.package_folder", _nowhere)

    checks = {check.name: check for check in asyncio.run(report.examine(MemoryEngineSettings()))}

    failed = {name for name, check in checks.items() if check.status is Status.FAIL}
    assert {"SWI-Prolog", "Redis", "graph", "torch"} <= failed
    assert checks["ONNX"].status is Status.WARN
    assert checks["token counting"].status is Status.WARN
    assert all(check.fix for check in checks.values() if check.status is not Status.OK)


def test_a_check_that_breaks_hides_no_other(monkeypatch):
    async def broken():
        raise RuntimeError("no such device")

    monkeypatch.setattr(machine, "python", broken)

    checks = asyncio.run(report.examine(MemoryEngineSettings()))

    assert checks[0].status is Status.FAIL
    assert "no such device" in checks[0].detail
    assert len(checks) == len(report.looks(MemoryEngineSettings()))


def test_what_is_configured_decides_what_is_needed():
    onnx_only = EmbeddingSettings(backend="onnx")

    assert asyncio.run(models.torch(onnx_only)).status is not Status.FAIL
    abstractive = SummarySettings(abstractive=True)
    assert asyncio.run(models.anthropic(abstractive)).status in {Status.WARN, Status.OK}


def test_a_folder_that_cannot_be_used_is_found(tmp_path):
    file = tmp_path / "a-file"
    file.write_text("x")

    check = asyncio.run(machine.data_dir(file / "below"))

    assert check.status is Status.FAIL
    assert "--data-dir" in check.fix


@pytest.mark.parametrize("folder", ["/proc/nope", "/proc/nope/deeper", "/dev/null", "/sys"])
def test_a_folder_in_which_nothing_can_be_made_is_found_by_trying(folder):
    check = asyncio.run(machine.data_dir(Path(folder)))

    assert check.status is Status.FAIL
    assert folder in check.detail


def test_trying_leaves_nothing_behind(tmp_path):
    audit = tmp_path / "audit.jsonl"
    audit.write_text("{}\n")

    assert asyncio.run(machine.data_dir(tmp_path / "deep" / "er")).status is Status.OK
    assert asyncio.run(machine.audit_file(audit)).status is Status.OK
    assert asyncio.run(machine.audit_file(tmp_path / "new" / "audit.jsonl")).status is Status.OK
    assert list(tmp_path.iterdir()) == [audit]
    assert audit.read_text() == "{}\n"


def test_an_audit_file_that_cannot_be_written_is_found(tmp_path):
    settings = MemoryEngineSettings.model_validate({"audit": {"file": "/proc/nope/audit.jsonl"}})

    checks = {check.name: check for check in asyncio.run(report.examine(settings))}

    assert checks["audit file"].status is Status.WARN
    assert "audit.file" in checks["audit file"].fix
    assert asyncio.run(machine.audit_file(tmp_path)).status is Status.WARN


def test_a_server_that_does_not_answer_fails_the_examination(tmp_path):
    env = {
        "ORCHESTRATA_MEMORY__REDIS__URL": "redis://:secret@127.0.0.1:1/0",
        "ORCHESTRATA_MEMORY__GRAPH__URI": "bolt://127.0.0.1:1",
    }

    outcome = run("doctor", "--json", env=env)

    by_name = {check["name"]: check for check in outcome.json["checks"]}
    assert outcome.code == 5
    assert outcome.json["healthy"] is False
    assert by_name["Redis"]["status"] == by_name["graph"]["status"] == "fail"
    assert "secret" not in outcome.out


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        ("redis: {url: 'redis://canary'}", "warn", "redis stands outside runtime.memory_engine"),
        ("runtime: {embedding: {model: canary}}", "warn", "runtime.embedding stands outside"),
        ("logging: {level: info}", "ok", ""),
        (
            "runtime: {memory_engine: {injection_enabled: true}}\nredis: {url: canary}",
            "ok",
            "",
        ),
    ],
)
def test_a_file_whose_settings_may_be_misplaced_is_told_of(tmp_path, text, status, told):
    file = tmp_path / "platform.yaml"
    file.write_text(text)

    outcome = run("--config", file, "doctor", "--json")
    named = run("doctor", "--json", env={"ORCHESTRATA_MEMORY_CONFIG": str(file)})

    check = outcome.json["checks"][0]
    assert (check["name"], check["status"]) == ("config file", status)
    assert told in check["detail"]
    assert bool(check["fix"]) == (status == "warn")
    assert "canary" not in outcome.out
    assert named.json["checks"][0] == check


@pytest.mark.parametrize(
    ("rules", "told"), [(None, "cannot be read"), ("can_read_memory(", "line 1")]
)
def test_rule_files_are_loaded_as_an_engine_would(tmp_path, rules, told):
    file = tmp_path / "own.pl"
    if rules is not None:
        file.write_text(rules)
    settings = GovernanceSettings(rule_files=[file])

    check = asyncio.run(machine.rules(settings))

    assert check.status is Status.FAIL
    assert str(file) in check.detail
    assert told in check.detail
    assert "rule_files" in check.fix
    file.write_text("may_come(X) :- registered(X).\n")
    assert asyncio.run(machine.rules(settings)).status is Status.OK


def test_people_see_a_table_with_a_verdict():
    outcome = run("doctor")

    assert "SWI-Prolog" in outcome.out
    assert "the engine can" in outcome.out


@pytest.mark.servers
async def test_it_asks_the_configured_servers(clean_redis, clean_graph):
    settings = MemoryEngineSettings.model_validate(
        {
            "redis": {"url": clean_redis.url},
            "graph": {
                "uri": clean_graph.uri,
                "username": clean_graph.username,
                "password": clean_graph.password or None,
                "database": clean_graph.database,
            },
        }
    )

    checks = {check.name: check for check in await report.examine(settings)}

    assert checks["Redis"].status is Status.OK
    assert "append-only file always" in checks["Redis"].detail
    assert checks["graph"].status is Status.OK
    assert f"dialect {clean_graph.dialect}" in checks["graph"].detail
