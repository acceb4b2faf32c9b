"""Loads and checks the configuration: YAML below ``runtime.memory_engine``, then variables.

Every problem is told at once, with the full name of its field and where its value came from.
Values are never shown: one of them may be a secret in the wrong place.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrata_memory.config import environment
from orchestrata_memory.config.document import Tree, interpolated, read_section
from orchestrata_memory.config.settings import MemoryEngineSettings
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
    variables = os.environ if environ is None else environ
    if path is None and variables.get(environment.CONFIG):
        path = Path(variables[environment.CONFIG])
    problems: list[str] = []
    tree: Tree = {} if path is None else _from_file(path, variables, problems)
    origins = environment.overlay(
        tree, variables, lambda name, what: problems.append(f"{name}: {what}")
    )
    settings = _validated(tree, origins, problems)
    if settings is None or problems:
        raise MemoryConfigurationError(_told(path, problems))
    return settings


def _from_file(path: Path, variables: Mapping[str, str], problems: list[str]) -> Tree:
    path = path.expanduser()

    def missing(where: tuple[str, ...], name: str) -> None:
        problems.append(f"{_name(where)}: the environment variable {name} is not set")

    tree: Tree = interpolated(read_section(path, SECTION), variables, missing)
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
        elif Path in (annotation, *get_args(annotation)):
            tree[name] = _anchored(value, folder)


def _anchored(value: object, folder: Path) -> object:
    if isinstance(value, str) and value:
        return str(folder / Path(value).expanduser())
    if isinstance(value, list):
        return [_anchored(item, folder) for item in value]
    return value


def _validated(
    tree: Tree, origins: Mapping[tuple[str, ...], str], problems: list[str]
) -> MemoryEngineSettings | None:
    try:
        return MemoryEngineSettings.model_validate(_without_empty_groups(tree))
    except ValidationError as error:
        problems.extend(
            _problem(details, origins)
            for details in error.errors(include_url=False, include_input=False)
        )
        return None


def _without_empty_groups(tree: Tree) -> Tree:
    """``redis:`` with nothing below it means that group's defaults."""
    return {
        name: value
        for name, value in tree.items()
        if value is not None or name not in MemoryEngineSettings.model_fields
    }


def _problem(details: ErrorDetails, origins: Mapping[tuple[str, ...], str]) -> str:
    where = tuple(str(part) for part in details["loc"])
    what = details["msg"].removeprefix("Value error, ")
    if details["type"] == "extra_forbidden":
        what = "there is no such setting" + _suggestion(where)
    variable = next((name for path, name in origins.items() if path[: len(where)] == where), None)
    return f"{_name(where)}: {what}" + (f" (set by {variable})" if variable else "")


def _suggestion(where: tuple[str, ...]) -> str:
    model: Any = MemoryEngineSettings
    for name in where[:-1]:
        field = model.model_fields.get(name)
        model = field.annotation if field else None
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return ""
    close = difflib.get_close_matches(where[-1], model.model_fields, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return "; there are " + ", ".join(sorted(model.model_fields))


def _name(where: tuple[str, ...]) -> str:
    return ".".join((PREFIX, *where))


def _told(path: Path | None, problems: list[str]) -> str:
    source = f"{path}" if path is not None else "the environment"
    if len(problems) == 1:
        return f"{source}: {problems[0]}"
    lines = "".join(f"\n  {problem}" for problem in problems)
    return f"{source}: {len(problems)} problems:{lines}"
