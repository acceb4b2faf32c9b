"""The effective settings, name by name, and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import settings_of
from orchestrata_memory.config import environment
from orchestrata_memory.config.loader import load_with_origins
from orchestrata_memory.config.settings import MemoryEngineSettings

SECRET = "(set)"  # noqa: S105 - what stands in its place


def flat(settings: BaseModel, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Dotted names and values of all settings; secrets only say whether they are set."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, SecretStr):
            yield prefix + name, SECRET
        else:
            yield prefix + name, _without_password(value)


def _without_password(value: object) -> object:
    """An address without what stands before its host."""
    if isinstance(value, str) and "://" in value and "@" in value:
        scheme, _, rest = value.partition("://")
        return f"{scheme}://{SECRET}@{rest.rpartition('@')[2]}"
    return value


def effective(options: Options) -> list[tuple[str, object, str]]:
    """Dotted name, value and origin of every setting.

    Raises:
        MemoryConfigurationError: The file or a variable is wrong.
    """
    settings = settings_of(options)
    file = options.config or os.environ.get(environment.CONFIG)
    read, by_variable = load_with_origins(options.config, environ=os.environ)
    loaded, defaults = dict(flat(read)), dict(flat(MemoryEngineSettings()))
    given = {".".join(path): variable for path, variable in by_variable.items()}
    if options.data_dir is not None:
        given["embedded.data_dir"] = "--data-dir"

    def origin(name: str, value: object) -> str:
        if name in given:
            return given[name]
        if value != loaded[name]:
            return "command line's default"
        return "default" if value == defaults[name] or file is None else str(file)

    return [(name, value, origin(name, value)) for name, value in flat(settings)]
