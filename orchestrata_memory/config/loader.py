"""Loads and checks the configuration: YAML below ``runtime.memory_engine``, then variables.

Every problem is told at once, with the full name of its field and where its value came from.
Values are never shown: one of them may be a secret in the wrong place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from orchestrata_memory.config import environment
from orchestrata_memory.config.document import Tree, interpolated, read_document, section_of
from orchestrata_memory.config.placement import misplaced, suspected
from orchestrata_memory.config.problems import InvalidSettingsError, SettingProblem, listed
from orchestrata_memory.config.settings import MemoryEngineSettings, UserPath
from orchestrata_memory.errors import MemoryConfigurationError

SECTION = ("runtime", "memory_engine")
PREFIX = ".".join(SECTION)


def load_settings(
    path: Path | None = None, *, environ: Mapping[str, str] | None = None
) -> MemoryEngineSettings:
    """The settings of a file and of environment variables, which win.

    Args:
        path: A YAML file; None: the one `ORCHESTRATA_MEMORY_CONFIG` names, or none at all. Its
            values may refer to variables as ``${NAME}`` or ``${NAME:-default}``; relative paths
            in it are relative to its folder.
        environ: None: the process's environment.

    Raises:
        MemoryConfigurationError: Lists each problem with the full name of its field.
    """
    return load_with_origins(path, environ=environ)[0]


def load_with_origins(
    path: Path | None = None, *, environ: Mapping[str, str] | None = None
) -> tuple[MemoryEngineSettings, dict[tuple[str, ...], str]]:
    """As `load_settings`, and which variable set what, by the names on the way to it."""
    variables = os.environ if environ is None else environ
    path = config_file(path, variables)
    problems: list[str] = []
    tree: Tree = {} if path is None else _from_file(path, variables, problems)
    origins = environment.overlay(
        tree, variables, lambda name, what: problems.append(f"{name}: {what}")
    )
    settings = _validated(tree, origins, problems)
    if settings is None or problems:
        source = "the environment" if path is None else str(path)
        raise MemoryConfigurationError(listed(source, problems))
    return settings, origins


def config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file that `load_settings` reads; None: there is none."""
    named = environ.get(environment.CONFIG)
    if path is None and named:
        path = Path(named)
    try:
        return None if path is None else path.expanduser()
    except RuntimeError as error:
        raise MemoryConfigurationError(
            f"the configuration {path} names the home folder of nobody known here"
        ) from error


def suspicion(path: Path) -> str | None:
    """What in a file without settings of ours may have been meant as such; None when nothing.

    Raises:
        MemoryConfigurationError: The file cannot be read.
    """
    document = read_document(path)
    return None if section_of(document, path, SECTION) else suspected(document, SECTION)


def _from_file(path: Path, variables: Mapping[str, str], problems: list[str]) -> Tree:

    def missing(where: tuple[str, ...], name: str) -> None:
        problems.append(f"{_name(where)}: the environment variable {name} is not set")

    document = read_document(path)
    section = section_of(document, path, SECTION)
    if not section and (problem := misplaced(document, SECTION)):
        problems.append(problem)
    tree: Tree = interpolated(section, variables, missing)
    _anchor_paths(tree, MemoryEngineSettings, path.absolute().parent)
    return tree


def _anchor_paths(tree: object, model: type[BaseModel], folder: Path) -> None:
    """Make the file's relative paths relative to its folder, in place."""
    if not isinstance(tree, dict):
        return
    for name, field in model.model_fields.items():
        value, annotation = tree.get(name), field.annotation
        if value is None:
            continue
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            _anchor_paths(value, annotation, folder)
        elif UserPath in (annotation, *get_args(annotation)):
            tree[name] = _anchored(value, folder)


def _anchored(value: object, folder: Path) -> object:
    if isinstance(value, str) and value and not value.startswith("~"):
        return str(folder / value)
    if isinstance(value, list):
        return [_anchored(item, folder) for item in value]
    return value


def _validated(
    tree: Tree, origins: Mapping[tuple[str, ...], str], problems: list[str]
) -> MemoryEngineSettings | None:
    try:
        return MemoryEngineSettings.model_validate(_without_empty_groups(tree))
    except InvalidSettingsError as error:
        problems.extend(_told(problem, origins) for problem in error.problems)
        return None


def _without_empty_groups(tree: Tree) -> Tree:
    """``redis:`` with nothing below it means that group's defaults."""
    return {
        name: value
        for name, value in tree.items()
        if value is not None or name not in MemoryEngineSettings.model_fields
    }


def _told(problem: SettingProblem, origins: Mapping[tuple[str, ...], str]) -> str:
    where = problem.where
    variable = next((name for path, name in origins.items() if _overlap(path, where)), None)
    return f"{_name(where)}: {problem.what}" + (f" (set by {variable})" if variable else "")


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one is the other or a part of it."""
    return all(a == b for a, b in zip(one, other, strict=False))


def _name(where: tuple[str, ...]) -> str:
    return ".".join((PREFIX, *where))
