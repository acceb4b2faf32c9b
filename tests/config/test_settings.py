"""Settings made in a program: a mistake is a typed error that names the field, never the value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dependency_injector.containers import DynamicContainer
from pydantic import SecretStr

from orchestrata_memory import (
    InProcessKernel,
    MemoryEngineSettings,
    build_engine,
    register_memory_engine,
)
from orchestrata_memory.config.loader import load_settings
from orchestrata_memory.config.settings import GraphSettings, RedisSettings
from orchestrata_memory.errors import MemoryConfigurationError

SECRET = "hunter2-canary"

MAKERS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "constructor": (
        lambda: MemoryEngineSettings(redis={"ttl_seconds": SECRET}, graph={"passwort": SECRET}),  # type: ignore[arg-type]
        ("redis.ttl_seconds: ", "graph.passwort: there is no such setting; did you mean password?"),
    ),
    "group": (lambda: RedisSettings(url=[SECRET]), ("url: ",)),  # type: ignore[arg-type]
    "group in a group": (
        lambda: MemoryEngineSettings(graph=GraphSettings(max_connections=SECRET)),  # type: ignore[arg-type]
        ("max_connections: ",),
    ),
    "validated": (
        lambda: MemoryEngineSettings.model_validate({"redis": SECRET, "limits": {"tags": SECRET}}),
        ("redis: ", "limits.tags: "),
    ),
    "from JSON": (
        lambda: MemoryEngineSettings.model_validate_json(f'{{"redis": "{SECRET}"}}'),
        ("redis: ",),
    ),
    "no JSON": (lambda: MemoryEngineSettings.model_validate_json(SECRET), ("JSON",)),
    "from strings": (
        lambda: RedisSettings.model_validate_strings({"ttl_seconds": SECRET}),
        ("ttl_seconds: ",),
    ),
    "not even a mapping": (lambda: MemoryEngineSettings.model_validate(SECRET), ("dictionary",)),
    "no stemmer": (
        lambda: MemoryEngineSettings(search={"language": SECRET}),  # type: ignore[arg-type]
        ("search.language: there is no such stemmer; choose one of ",),
    ),
    "unknown role": (
        lambda: MemoryEngineSettings(governance={"volks": {"ENG:A": [SECRET]}}),  # type: ignore[arg-type]
        ("governance.volks.ENG:A.0: there is no such role",),
    ),
}


@pytest.mark.parametrize(("make", "told"), MAKERS.values(), ids=MAKERS)
def test_a_mistake_names_the_field_and_hides_the_value(
    make: Callable[[], Any], told: tuple[str, ...]
) -> None:
    with pytest.raises(MemoryConfigurationError) as caught:
        make()
    assert all(part in str(caught.value) for part in told)
    shown = "".join(traceback.format_exception_only(caught.value))
    assert SECRET not in shown + repr(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("wrong", [{"redis": {"url": SECRET}}, SECRET, {}])
def test_what_are_no_settings_is_refused_without_being_shown(wrong: object) -> None:
    for use in (
        build_engine,
        lambda given: register_memory_engine(DynamicContainer(), given, kernel=InProcessKernel()),
    ):
        with pytest.raises(MemoryConfigurationError, match="MemoryEngineSettings") as caught:
            use(wrong)  # type: ignore[operator]
        assert SECRET not in str(caught.value)


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(MemoryConfigurationError, match="MemoryEngineSettings: 2 problems:"):
        MemoryEngineSettings.model_validate({"redis": {"ttl_seconds": 0}, "limits": {"tags": -1}})


def test_what_two_rules_find_is_told_at_once() -> None:
    with pytest.raises(MemoryConfigurationError, match="2 problems:") as caught:
        MemoryEngineSettings.model_validate(
            {"governance": {"volks": {"SYS:MEMORY": [], "ENG:A": ["leed"]}}}
        )
    assert "governance.volks.SYS:MEMORY: SYS:MEMORY is the engine" in str(caught.value)
    assert "governance.volks.ENG:A.0: there is no such role" in str(caught.value)


def test_values_never_change() -> None:
    settings = RedisSettings()
    with pytest.raises(MemoryConfigurationError, match="sentinel_master: settings never change"):
        settings.sentinel_master = SECRET
    with pytest.raises(MemoryConfigurationError, match="url") as caught:
        settings.url = SecretStr(SECRET)
    assert SECRET not in str(caught.value)
    with pytest.raises(MemoryConfigurationError, match="url: settings never change"):
        del settings.url
    assert settings == RedisSettings()


def test_what_is_right_stays_as_it_was() -> None:
    settings = MemoryEngineSettings(redis=RedisSettings(ttl_seconds=5))
    assert settings.redis.ttl_seconds == 5
    assert settings.redis.model_fields_set == {"ttl_seconds"}
    assert MemoryEngineSettings.model_validate(settings.model_dump()) == settings
    assert settings.model_copy(update={"injection_enabled": False}).injection_enabled is False


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("ORCHESTRATA_MEMORY_DATA_DIR", "embedded.data_dir"),
        ("ORCHESTRATA_MEMORY__EMBEDDED__DATA_DIR", "embedded.data_dir"),
        ("ORCHESTRATA_MEMORY__EMBEDDING__MODEL_PATH", "embedding.model_path"),
        ("ORCHESTRATA_MEMORY__AUDIT__FILE", "audit.file"),
    ],
)
def test_a_path_may_begin_with_the_home_folder(variable: str, path: str) -> None:
    group, name = path.split(".")
    settings = load_settings(None, environ={variable: "~/memory"})
    assert getattr(getattr(settings, group), name) == Path.home() / "memory"


def test_the_home_folder_of_nobody_is_a_mistake_in_the_field() -> None:
    environ = {"ORCHESTRATA_MEMORY__GOVERNANCE__RULE_FILES": '["~nobody-known/rules.pl"]'}
    with pytest.raises(MemoryConfigurationError, match="home folder of nobody"):
        load_settings(None, environ=environ)
