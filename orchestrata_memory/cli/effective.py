"""The effective settings, name by name, and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import settings_of
from orchestrata_memory.config import environment
from orchestrata_memory.config.loader import load_settings
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


def origins(options: Options) -> dict[str, str]:
    """Dotted names of the settings that an option or a variable sets, and which one."""
    by_variable = environment.overlay({}, os.environ, lambda name, what: None)  # noqa: ARG005
    found = {".".join(path): variable for path, variable in by_variable.items()}
    if options.data_dir is not None:
        found["embedded.data_dir"] = "--data-dir"
    return found


def effective(options: Options) -> list[tuple[str, object, str]]:
    """Dotted name, value and origin of every setting.

    Raises:
        MemoryConfigurationError: The file or a variable is wrong.
    """
    settings = settings_of(options)
    file = options.config or os.environ.get(environment.CONFIG)
    given, defaults = origins(options), dict(flat(MemoryEngineSettings()))
    loaded = dict(flat(load_settings(options.config, environ=os.environ)))

    def origin(name: str, value: object) -> str:
        if name in given:
            return given[name]
        if value != loaded[name]:
            return "command line's default"
        return "default" if value == defaults[name] or file is None else str(file)

    return [(name, value, origin(name, value)) for name, value in flat(settings)]
