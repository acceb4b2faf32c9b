"""Settings of the engine that stand in a file where nobody reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from orchestrata_memory.config.settings import MemoryEngineSettings


def misplaced(document: object, section: tuple[str, ...]) -> str | None:
    """What is wrong with a file that has nothing under `section`; None when nothing surely is.

    Other components may keep theirs in the same file, so a name alone says nothing: a group counts
    as ours when it holds one of our settings.
    """
    if not isinstance(document, Mapping):
        return None
    names = sorted(_ours(document, section))
    if not names:
        return None
    stands, them = ("stands", "it") if len(names) == 1 else ("stand", "them")
    return (
        f"{', '.join(names)} {stands} outside {'.'.join(section)}, where the engine's settings "
        f"are read: move {them} there"
    )


def _ours(document: Mapping[object, object], section: tuple[str, ...]) -> Iterator[str]:
    """Dotted names of what looks like the engine's on the way to the section."""
    level: object = document
    for depth, name in enumerate(section):
        if not isinstance(level, Mapping):
            return
        before = ".".join(section[:depth])
        for found, value in level.items():
            late = found in section[depth + 1 :] and isinstance(value, Mapping)
            if late or _is_ours(found, value):
                yield f"{before}.{found}" if before else str(found)
        level = level.get(name)


def _is_ours(name: object, value: object) -> bool:
    field = MemoryEngineSettings.model_fields.get(str(name))
    if field is None:
        return False
    group = field.annotation
    if isinstance(group, type) and issubclass(group, BaseModel):
        return isinstance(value, Mapping) and any(inner in group.model_fields for inner in value)
    return True
