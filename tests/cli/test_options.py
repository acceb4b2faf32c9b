"""Who is calling, and with which configuration."""

import inspect
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import typer

from orchestrata_memory.cli.arguments import moment
from orchestrata_memory.cli.option_groups import OptionGroup, expanded
from orchestrata_memory.cli.options import DEFAULT_VOLK, Options
from orchestrata_memory.cli.runtime import context_of, with_light_model
from orchestrata_memory.config.settings import EmbeddingSettings, MemoryEngineSettings
from tests.cli.runner import run


def test_the_later_option_wins_and_an_absent_one_changes_nothing():
    before = Options(volk="ENG:ALPHA", session="s1", json=True)

    after = before.overridden({"volk": None, "session": "s2", "json": False})

    assert after == Options(volk="ENG:ALPHA", session="s2", json=True)


def test_without_options_the_default_volk_calls_in_a_session_of_the_day():
    options = Options()

    assert options.caller == DEFAULT_VOLK
    assert options.session_id.endswith(f"{datetime.now().astimezone():%Y-%m-%d}")


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2025-03-01", False, datetime(2025, 3, 1, tzinfo=UTC)),
        ("2025-03-01", True, datetime(2025, 3, 1, 23, 59, 59, 999999, tzinfo=UTC)),
        ("2025-03-01T10:30", False, datetime(2025, 3, 1, 10, 30, tzinfo=UTC)),
        ("2025-03-01T10:30+02:00", True, datetime(2025, 3, 1, 8, 30, tzinfo=UTC)),
    ],
)
def test_moments_are_aware(text, end, expected):
    value = moment(text, "--from", end_of_day=end)

    assert value == expected
    assert value.utcoffset() in {timedelta(0), timedelta(hours=2)}


@pytest.mark.parametrize("text", ["", "tomorrow", "2025-13-01", "2025-02-30T10:00"])
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(typer.BadParameter, match="ISO 8601"):
        moment(text, "--from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(OptionGroup):
    needed: str
    other: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Made(OptionGroup):
    tags: list[str] = field(default_factory=list)


def _parameter(kind):
    return inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY, annotation=kind)


def test_an_option_of_a_group_has_its_fields_default_or_is_required():
    parameters, _ = expanded([_parameter(Wanted)])

    assert {item.name: item.default for item in parameters} == {
        "needed": inspect.Parameter.empty,
        "other": 3,
    }
    with pytest.raises(TypeError, match=r"Made\.tags"):
        expanded([_parameter(Made)])


def test_common_options_may_stand_before_or_after_the_command(tmp_path):
    before = run("--data-dir", tmp_path, "--json", "config").json
    after = run("config", "--data-dir", tmp_path, "--json").json

    assert before["settings"]["embedded.data_dir"] == str(tmp_path)
    assert before == after


def test_config_says_where_each_value_comes_from_and_hides_secrets(tmp_path):
    file = tmp_path / "memory.yaml"
    file.write_text(
        "runtime:\n  memory_engine:\n    injection_budget_tokens: 900\n"
        "    graph: {uri: 'bolt://neo:hidden@10.0.0.1:7687', password: hidden}\n"
    )
    env = {"ORCHESTRATA_MEMORY__REDIS__URL": "redis://:hidden@10.0.0.1:6380/0"}

    outcome = run("config", "--config", file, "--data-dir", tmp_path, "--json", env=env)

    settings, origins = outcome.json["settings"], outcome.json["origins"]
    assert "hidden" not in outcome.out
    assert settings["injection_budget_tokens"] == 900
    assert settings["graph.uri"] == "bolt://(set)@10.0.0.1:7687"
    assert origins["injection_budget_tokens"] == str(file)
    assert origins["redis.url"] == "ORCHESTRATA_MEMORY__REDIS__URL"
    assert origins["embedded.data_dir"] == "--data-dir"
    assert origins["embedded.linger_seconds"] == "command line's default"
    assert origins["worker.batch_size"] == "default"


def test_config_names_the_file_where_its_key_wins_over_the_usual_variable(tmp_path):
    file = tmp_path / "memory.yaml"
    file.write_text("runtime:\n  memory_engine:\n    summary: {anthropic_api_key: hidden}\n")
    env = {"ANTHROPIC_API_KEY": "another"}

    with_file = run("config", "--config", file, "--json", env=env).json
    without = run("config", "--json", env=env).json

    name = "summary.anthropic_api_key"
    assert with_file["origins"][name] == str(file)
    assert without["origins"][name] == "ANTHROPIC_API_KEY"


def test_the_caller_is_all_that_the_options_name():
    options = Options(volk="ENG:ALPHA", session="s", provider="anthropic", model="claude-haiku-4-5")

    context = context_of(options, focus="the cellar")

    assert (context.volk_id, context.session_id) == ("ENG:ALPHA", "s")
    assert (context.provider, context.model) == ("anthropic", "claude-haiku-4-5")
    assert context.focus == "the cellar"


def test_a_configured_registration_keeps_the_default_volk_out(tmp_path):
    env = {"ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS": '{"ENG:ALPHA": ["team_lead"]}'}

    assert run("config", "--json").json["settings"]["governance.volks"] == {
        DEFAULT_VOLK: ["team_lead"]
    }
    assert run("config", "--json", env=env).json["settings"]["governance.volks"] == {
        "ENG:ALPHA": ["team_lead"]
    }


@pytest.mark.parametrize(
    ("embedding", "backend"),
    [
        ({}, "onnx"),
        ({"model": "sentence-transformers/all-MiniLM-L6-v2"}, "onnx"),
        ({"backend": "sentence-transformers"}, "sentence-transformers"),
        ({"model": "someone/another-model"}, "sentence-transformers"),
        ({"model_path": "."}, "sentence-transformers"),
    ],
)
def test_only_the_default_model_is_taken_in_its_light_form(embedding, backend):
    settings = MemoryEngineSettings(embedding=EmbeddingSettings(**embedding))

    assert with_light_model(settings).embedding.backend == backend
