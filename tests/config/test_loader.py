"""Configuration: what is loaded, and what is said of mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrata_memory.config import load_settings
from orchestrata_memory.config.settings import SHIPPED_ROLES
from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.governance.rulebook import shipped_rules
from orchestrata_memory.models import InjectionStrategy

ROOT = Path(__file__).parents[2]
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Puts text below ``runtime.memory_engine`` of a new file."""

    def put(text: str) -> Path:
        path = tmp_path / "config.yaml"
        body = "".join(f"    {line}\n" for line in text.splitlines())
        path.write_text(f"runtime:\n  memory_engine:\n{body}")
        return path

    return put


def problem_of(path: Path | None = None, **environ: str) -> str:
    with pytest.raises(MemoryConfigurationError) as caught:
        load_settings(path, environ=environ)
    return str(caught.value)


def test_without_anything_the_fixed_defaults_hold() -> None:
    settings = load_settings(environ={})
    assert settings.injection_budget_tokens == 4096
    assert settings.injection_strategy is InjectionStrategy.RELEVANCE
    assert settings.injection_enabled is True
    embedding = settings.embedding
    assert (embedding.model, embedding.dimension) == ("all-MiniLM-L6-v2", 384)
    assert (embedding.cache_embeddings, embedding.batch_size, embedding.device) == (True, 32, "cpu")
    assert settings.redis.ttl_seconds == 86_400
    assert settings.redis.failed_migration_ttl_seconds == 604_800


def test_both_shipped_files_load() -> None:
    development = load_settings(ROOT / "configs" / "development.yaml", environ={})
    assert development.redis.url is None
    assert development.graph.uri is None
    assert development.governance.volks["ENG:ALPHA"] == ("team_lead",)

    secrets = {"REDIS_PASSWORD": "one", "NEO4J_PASSWORD": "two"}
    production = load_settings(ROOT / "configs" / "production.yaml", environ=secrets)
    assert production.redis.url is not None
    assert production.redis.url.get_secret_value() == "redis://:one@127.0.0.1:6379/0"
    assert production.graph.password is not None
    assert production.graph.password.get_secret_value() == "two"
    assert production.graph.uri == "bolt://127.0.0.1:7687"


def test_production_names_the_secrets_that_are_missing() -> None:
    message = problem_of(ROOT / "configs" / "production.yaml")
    assert (
        "runtime.memory_engine.redis.url: the environment variable REDIS_PASSWORD is not set"
        in message
    )
    assert (
        "runtime.memory_engine.graph.password: the environment variable NEO4J_PASSWORD" in message
    )


def test_a_file_without_our_section_means_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("runtime:\n  kernel: {workers: 4}\n")
    assert load_settings(path, environ={}) == load_settings(environ={})


def test_an_empty_group_means_its_defaults(write: Write) -> None:
    assert load_settings(write("redis:\ngraph:"), environ={}) == load_settings(environ={})


def test_variables_win_over_the_file_and_are_converted(write: Write) -> None:
    path = write("embedding: {dimension: 128, batch_size: 8}\ninjection_enabled: true")
    settings = load_settings(
        path,
        environ={
            "ORCHESTRATA_MEMORY__EMBEDDING__DIMENSION": "256",
            "orchestrata_memory__injection_enabled": "false",
            "ORCHESTRATA_MEMORY__WORKER__RETRY_INITIAL_SECONDS": "0.5",
            "ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS": json.dumps({"ENG:A": ["team_lead"]}),
            "ORCHESTRATA_MEMORY__REDIS__URL": "",  # as compose files leave it
        },
    )
    assert (settings.embedding.dimension, settings.embedding.batch_size) == (256, 8)
    assert settings.injection_enabled is False
    assert settings.worker.retry_initial_seconds == 0.5
    assert settings.governance.volks == {"ENG:A": ("team_lead",)}
    assert settings.redis.url is None


def test_the_well_known_variables(write: Write, tmp_path: Path) -> None:
    path = write("embedded: {data_dir: /elsewhere}\nsummary: {anthropic_api_key: from-file}")
    environ = {"ORCHESTRATA_MEMORY_DATA_DIR": str(tmp_path), "ANTHROPIC_API_KEY": "from-env"}
    settings = load_settings(path, environ=environ)
    assert settings.embedded.data_dir == tmp_path
    assert settings.summary.anthropic_api_key is not None
    assert settings.summary.anthropic_api_key.get_secret_value() == "from-file"

    bare = load_settings(environ={**environ, "ORCHESTRATA_MEMORY_CONFIG": ""})
    assert bare.summary.anthropic_api_key is not None
    assert bare.summary.anthropic_api_key.get_secret_value() == "from-env"

    named = load_settings(environ={"ORCHESTRATA_MEMORY_CONFIG": str(path)})
    assert named.embedded.data_dir == Path("/elsewhere")


def test_references_defaults_and_dollar_signs(write: Write) -> None:
    path = write(
        "redis: {url: 'redis://:${A}$$x@${HOST:-localhost}:${PORT:-1}/0'}\n"
        "graph: {uri: '${GRAPH:-}', password: '${A}'}"
    )
    settings = load_settings(path, environ={"A": "p$1${B}", "PORT": ""})
    assert settings.redis.url is not None
    assert settings.redis.url.get_secret_value() == "redis://:p$1${B}$x@localhost:1/0"
    assert settings.graph.uri is None


def test_paths_of_a_file_are_relative_to_it(write: Write) -> None:
    path = write(
        "governance: {rule_files: [rules/own.pl, /abs.pl, ~/my.pl]}\naudit: {file: trail.jsonl}"
    )
    settings = load_settings(path, environ={})
    folder = path.parent
    assert settings.governance.rule_files == (
        folder / "rules" / "own.pl",
        Path("/abs.pl"),
        Path.home() / "my.pl",
    )
    assert settings.audit.file == folder / "trail.jsonl"


def test_every_problem_is_told_at_once_by_its_full_name(write: Write) -> None:
    message = problem_of(
        write(
            "embedding: {dimension: 1, devise: cpu}\nredis: {ttl_seconds: soon}\n"
            "injection_strategy: best\nlimitz: {}"
        ),
        ORCHESTRATA_MEMORY__WORKER__BATCH_SIZE="0",
        ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS="ENG:A",
    )
    for expected in (
        "7 problems",
        "runtime.memory_engine.embedding.dimension: Input should be greater than or equal to 2",
        "runtime.memory_engine.embedding.devise: there is no such setting; did you mean device?",
        "runtime.memory_engine.redis.ttl_seconds: ",
        "runtime.memory_engine.injection_strategy: ",
        "runtime.memory_engine.limitz: there is no such setting; did you mean limits?",
        (
            "runtime.memory_engine.worker.batch_size: Input should be greater than or equal to 1 "
            "(set by ORCHESTRATA_MEMORY__WORKER__BATCH_SIZE)"
        ),
        "ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS: its value must be JSON",
    ):
        assert expected in message


def test_no_message_or_text_form_shows_a_value(write: Write) -> None:
    secret = "hunter2-canary"
    message = problem_of(
        write(
            f"redis: {{url: [{secret}]}}\ngraph: {{password: {{x: {secret}}}}}\nlimits: {secret}"
        ),
        ORCHESTRATA_MEMORY__EMBEDDING__DIMENSION=secret,
        ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS=secret,
        ORCHESTRATA_MEMORY__INJECTION_STRATEGY=secret,
    )
    assert "problems" in message
    assert secret not in message

    settings = load_settings(
        environ={
            "ORCHESTRATA_MEMORY__REDIS__URL": f"redis://:{secret}@h/0",
            "ORCHESTRATA_MEMORY__GRAPH__PASSWORD": secret,
            "ANTHROPIC_API_KEY": secret,
        }
    )
    assert secret not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1\nb: secret-canary", "line "),
        ("a: 1\na: 2", "line 2, column 1: the key 'a' stands twice"),
        ("runtime: 3", "runtime: a mapping is needed here"),
        ("runtime: {memory_engine: [1]}", "runtime.memory_engine: a mapping is needed here"),
        ("- 1", "the document: a mapping is needed here"),
        ("a: !!python/object/apply:os.system ['true']", "line 1"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    message = problem_of(path)
    assert str(path) in message
    assert told in message
    assert "secret-canary" not in message


@pytest.mark.parametrize(
    "value",
    [
        "*hunter2",
        "!hunter2",
        "!hunter2!x",
        "!<hunter2",
        "!!int hunter2",
        "!!float hunter2",
        "!!bool hunter2",
        "!!timestamp hunter2",
        "!!binary hunter2",
        "2024-99-99",
        "&hunter2 x, other: &hunter2 y",
        "&$hunter2",
        "@hunter2",
        "%hunter2",
        "`hunter2",
        "|hunter2",
        ">hunter2",
        '"\\hunter2"',
        '"\\xhunter2"',
        "'hunter2",
        "[hunter2",
        "? [hunter2]",
        "{[hunter2]: 1}",
        "a: hunter2: 3",
        "hunter2\x01",
    ],
)
@pytest.mark.parametrize("style", ["graph: {{password: {}}}", "graph:\n  password: {}"])
def test_what_is_no_yaml_is_told_by_its_place_and_not_quoted(
    write: Write, value: str, style: str
) -> None:
    path = write(style.format(value))
    with pytest.raises(MemoryConfigurationError) as caught:
        load_settings(path, environ={})
    message = str(caught.value).removeprefix(str(path))
    assert "unter2" not in message
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("value", ["*hunter2", "!hunter2", "&hunter2 x, y: &hunter2 z", "@h"])
def test_a_value_that_has_to_stand_in_quotes_is_told_so(write: Write, value: str) -> None:
    message = problem_of(write(f"graph: {{password: {value}}}"))
    assert re.search(r": line 3, column \d+: it cannot be read here .* stand in quotes", message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "No such file" in problem_of(tmp_path / "absent.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in problem_of(binary)


def test_the_engine_itself_cannot_be_registered(write: Write) -> None:
    assert "SYS:MEMORY" in problem_of(write("governance: {volks: {'SYS:MEMORY': []}}"))


def test_unknown_roles_are_named_by_their_place_and_the_known_ones_by_name(write: Write) -> None:
    message = problem_of(write("governance: {volks: {'ENG:A': [team_lead, team_leed]}}"))
    assert "governance.volks.ENG:A.1: there is no such role" in message
    assert "system_admin, team_lead" in message
    assert "team_leed" not in message
    own = write("governance: {volks: {'ENG:A': [reviewer]}, rule_files: [own.pl]}")
    assert load_settings(own, environ={}).governance.volks["ENG:A"] == ("reviewer",)
    problem = problem_of(ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS='{"ENG:A": ["x"]}')
    assert "(set by ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS)" in problem


def test_the_known_roles_are_those_of_the_rules_as_shipped() -> None:
    rules = shipped_rules().text
    asked = set(re.findall(r"has_role\(\w+, ([a-z]\w*)\)", rules))
    needed = set(re.findall(r"^classification_role\(\w+, (\w+)\)", rules, re.MULTILINE))
    assert asked | needed == set(SHIPPED_ROLES)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("graph: {database: neo4j}", "graph.database"),
        ("graph: {http_url: 'http://127.0.0.1:1'}", "graph.http_url"),
        ("graph: {dialect: neo4j}", "graph.dialect"),
        ("redis: {sentinel_master: mine}", "redis.sentinel_master"),
    ],
)
def test_what_only_a_server_of_ones_own_heeds_is_refused_without_one(
    write: Write, text: str, field: str
) -> None:
    message = problem_of(write(text))
    assert f"runtime.memory_engine.{field}: " in message
    assert "leave this out" in message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "graph: {uri: 'bolt://canary'}\nlimits: {tags: 3}\nlogging: {}\nredis: {url: 'r://'}",
            "graph, limits, redis stand",
        ),
        ("injection_budget_tokens: 512", "injection_budget_tokens stands"),
        ("runtime: {injection_enabled: false, kernel: {}}", "runtime.injection_enabled stands"),
        ("memory_engine: {redis: {url: 'redis://canary'}}", "memory_engine stands"),
        (
            "runtime: {memory_engine: }\nsearch: {promote: no}\ngraph: {uri: b}\nlimits: {tags: 1}",
            "graph, limits, search stand",
        ),
    ],
)
def test_settings_outside_their_section_are_not_ignored(
    tmp_path: Path, text: str, named: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    message = problem_of(path)
    assert f"{path}: {named} outside runtime.memory_engine" in message
    assert "canary" not in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "redis: {host: elsewhere}\nsearch: {engine: other}",
        "redis: {url: 'redis://others'}\nembedding: {model: other}",
        "runtime: {redis: {url: 'redis://others'}, embedding: {model: other}, kernel: {}}",
        "redis: {url: a, pool: 3}\nembedding: {model: b, key: 3}\nworker: {batch_size: 1, a: 2}",
        "runtime: {memory_engine: {injection_enabled: true}}\nmemory_engine: {limits: {tags: 3}}",
        "runtime: {memory_engine: {limits: {tags: 3}}}\nredis: {url: 'redis://others'}",
        "logging: {level: info}",
        "runtimes: {python: 3}\nroutine: daily",
        "runtime: {memory: {limit: 3}, memory_engines: 2}",
    ],
)
def test_sections_of_others_are_theirs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert load_settings(path, environ={}).redis.url is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("runtime: {memory-engine: {}}", "runtime.memory-engine: did you mean memory_engine?"),
        ("runtimes: {memory_engine: {}}", "runtimes: did you mean runtime?"),
    ],
)
def test_a_misspelt_section_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert f"{path}: {told}" in problem_of(path)


def test_the_same_mapping_may_be_shared_by_an_anchor(write: Write) -> None:
    path = write("governance:\n  volks:\n    A: &lead [team_lead]\n    B: *lead")
    assert load_settings(path, environ={}).governance.volks["B"] == ("team_lead",)
