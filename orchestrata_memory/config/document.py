"""A YAML configuration file: strict reading, ``${VARIABLE}`` in values, relative paths."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from orchestrata_memory.errors import MemoryConfigurationError

Tree = dict[str, Any]

_REFERENCE = re.compile(r"\$(?:\$|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})")


_ALMOST = 0.9
"""How alike a name must be to be a slip of the pen: one or two letters of a long one."""

_HARMLESS = {
    problem: problem
    for problem in (
        "could not find expected ':'",
        "expected '<document start>'",
        "expected ',' or ']'",
        "expected ',' or '}'",
        "expected <block end>",
        "expected the node content",
        "found unexpected document separator",
        "found unexpected end of stream",
        "mapping keys are not allowed here",
        "mapping values are not allowed here",
        "sequence entries are not allowed here",
    )
} | {"but found another document": "there is more than one document"}
"""What a parser says of the text around a value; its other messages quote from values."""

_UNSAFE = (
    "it cannot be read here as plain values: one that begins with *, &, !, |, >, %, @ or ` has to "
    "stand in quotes"
)


class _RefusedError(yaml.constructor.ConstructorError):
    """A problem in words of our own."""


class _StrictLoader(yaml.SafeLoader):
    """Plain values only, and no key twice: the last one winning silently hides a mistake."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401 - as in yaml
        problem = None
        try:
            return super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            problem = "it is not what its tag or its form says"
        raise _RefusedError(None, None, problem, node.start_mark)


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise _RefusedError(None, None, "a key has to be a text", key_node.start_mark)
        if key in seen:
            problem = f"the key {key!r} stands twice"
            raise _RefusedError(None, None, problem, key_node.start_mark)
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_document(path: Path) -> object:
    """All that a file holds.

    Raises:
        MemoryConfigurationError: It cannot be read or is not YAML. Names the line, never its text.
    """
    try:
        return yaml.load(_text_of(path), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        problem = _told(error)
    except yaml.YAMLError:
        problem = "it is not YAML"
    except RecursionError:
        problem = "it is nested too deeply"
    # Raised outside, so that the error that quotes the text is not its context.
    raise MemoryConfigurationError(f"{path}: {problem}")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise MemoryConfigurationError(f"{path}: cannot be read: {reason}")


def _told(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = error.problem or ""
    if isinstance(error, _RefusedError):
        return line + problem
    return line + _HARMLESS.get(problem.split(", but ")[0], _UNSAFE)


def section_of(document: object, path: Path, section: tuple[str, ...]) -> Tree:
    """The mapping under `section`; empty when the document does not have it.

    Args:
        document: What `read_document` gave.
        path: Its file, for messages.
        section: Names on the way.

    Raises:
        MemoryConfigurationError: Something on the way to the section is not a mapping.
    """
    value = document
    for depth, name in enumerate(section):
        if value is None:
            return {}
        if not isinstance(value, dict):
            where = ".".join(section[:depth]) or "the document"
            raise MemoryConfigurationError(f"{path}: {where}: a mapping is needed here")
        if name not in value and (wrong := _misspelt(value, section[depth:])):
            where = ".".join((*section[:depth], wrong))
            raise MemoryConfigurationError(f"{path}: {where}: did you mean {name}?")
        value = value.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MemoryConfigurationError(f"{path}: {'.'.join(section)}: a mapping is needed here")
    return value


def _misspelt(value: Mapping[object, object], section: tuple[str, ...]) -> str | None:
    """The name that must be meant for the first one of `section`; others have names of their own.

    What is almost called so counts when it holds the rest of the section.
    """
    for found, inner in value.items():
        near = difflib.get_close_matches(section[0], [str(found)], cutoff=_ALMOST)
        if near and isinstance(inner, Mapping) and all(name in inner for name in section[1:2]):
            return str(found)
    return None


def interpolated(
    value: object, environ: Mapping[str, str], missing: Callable[[tuple[str, ...], str], None]
) -> Any:  # noqa: ANN401 - as YAML gives it
    """The same tree with ``${NAME}`` and ``${NAME:-default}`` in texts replaced.

    ``$$`` is a dollar sign. A text that is one reference to an empty or absent variable with an
    empty default becomes None.

    Args:
        value: A tree of YAML.
        environ: The variables.
        missing: Called with the path and name of a variable that is not set and has no default.
    """
    return _walk(value, (), environ, missing)


def _walk(
    value: object,
    path: tuple[str, ...],
    environ: Mapping[str, str],
    missing: Callable[[tuple[str, ...], str], None],
) -> object:
    if isinstance(value, dict):
        return {
            key: _walk(item, (*path, str(key)), environ, missing) for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _walk(item, (*path, str(position)), environ, missing)
            for position, item in enumerate(value)
        ]
    if isinstance(value, str) and "$" in value:
        return _replaced(value, path, environ, missing)
    return value


def _replaced(
    text: str,
    path: tuple[str, ...],
    environ: Mapping[str, str],
    missing: Callable[[tuple[str, ...], str], None],
) -> str | None:
    def one(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if name is None:
            return "$"
        given = environ.get(name)
        if given or (given is not None and default is None):
            return given
        if default is None:
            missing(path, name)
        return default or ""

    result = _REFERENCE.sub(one, text)
    return result if result or not _REFERENCE.fullmatch(text) else None
