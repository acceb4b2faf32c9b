"""Settings from environment variables: ``ORCHESTRATA_MEMORY__REDIS__URL`` sets ``redis.url``.

Lists and mappings are JSON. An empty variable counts as not set, as compose files leave them.
Beside these, `DATA_DIR` sets ``embedded.data_dir``, and ``ANTHROPIC_API_KEY`` is the default of
``summary.anthropic_api_key``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from orchestrata_memory.config.document import Tree
from orchestrata_memory.config.settings import MemoryEngineSettings

PREFIX = "ORCHESTRATA_MEMORY__"
DATA_DIR = "ORCHESTRATA_MEMORY_DATA_DIR"
CONFIG = "ORCHESTRATA_MEMORY_CONFIG"
ANTHROPIC_API_KEY = "ANTHROPIC_API_KEY"

Path = tuple[str, ...]


def overlay(
    tree: Tree, environ: Mapping[str, str], problem: Callable[[str, str], None]
) -> dict[Path, str]:
    """Put the variables' values into `tree`; they win over what it holds.

    Args:
        tree: Changed in place.
        environ: The variables.
        problem: Called with a variable's name and what is wrong with it.

    Returns:
        Path of a setting to the variable that set it.
    """
    origins: dict[Path, str] = {}
    for variable, path, text in _settings_in(environ):
        value: Any = text
        if _is_structured(path):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                problem(variable, "its value must be JSON")
                continue
        if _put(tree, path, value):
            origins[path] = variable
        else:
            problem(variable, f"{'.'.join(path[:-1])} is not a group of settings")
    _put_well_known(tree, environ, origins)
    return origins


def _settings_in(environ: Mapping[str, str]) -> Iterator[tuple[str, Path, str]]:
    for variable in sorted(environ):
        if variable.upper().startswith(PREFIX) and environ[variable]:
            path = tuple(variable[len(PREFIX) :].lower().split("__"))
            yield variable, path, environ[variable]


def _put_well_known(tree: Tree, environ: Mapping[str, str], origins: dict[Path, str]) -> None:
    data_dir = environ.get(DATA_DIR)
    path = ("embedded", "data_dir")
    if data_dir and path not in origins and _put(tree, path, data_dir):
        origins[path] = DATA_DIR
    key = environ.get(ANTHROPIC_API_KEY)
    path = ("summary", "anthropic_api_key")
    summary = tree.get("summary")
    given = isinstance(summary, dict) and summary.get("anthropic_api_key")
    if key and not given and _put(tree, path, key):
        origins[path] = ANTHROPIC_API_KEY


def _put(tree: Tree, path: Path, value: object) -> bool:
    """Set a value deep in a tree; False when something on the way is not a mapping."""
    for name in path[:-1]:
        if tree.get(name) is None:
            tree[name] = {}
        inner = tree[name]
        if not isinstance(inner, dict):
            return False
        tree = inner
    tree[path[-1]] = value
    return True


def _is_structured(path: Path) -> bool:
    """Whether the setting is a list or a mapping; False for one that does not exist."""
    annotation: Any = MemoryEngineSettings
    for name in path:
        model = annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return False
        if name not in model.model_fields:
            return False
        annotation = model.model_fields[name].annotation
    return _holds_items(annotation)


def _holds_items(annotation: object) -> bool:
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return any(_holds_items(option) for option in get_args(annotation))
    return (origin or annotation) in {dict, list, tuple, set, frozenset}
