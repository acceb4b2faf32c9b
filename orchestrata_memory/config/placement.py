"""Settings of the engine that stand in a file where nobody reads them.

Other components keep theirs in the same file, and their sections may be called as ours are and hold
what ours hold: `redis.url` is no proof. An error is only what nobody else would write; of the rest
`doctor` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from orchestrata_memory.config.settings import MemoryEngineSettings

_MANY = 3
"""So many groups like ours at one place are ours."""


def misplaced(document: object, section: tuple[str, ...]) -> str | None:
    """What is surely wrong with a file that has nothing under `section`; None when nothing is."""
    names = [name for level in _levels(document, section) for name in _surely_ours(*level)]
    if not names:
        return None
    return f"{_outside(names, section)}: move {_them(names)} there"


def suspected(document: object, section: tuple[str, ...]) -> str | None:
    """What may be ours in a file that has nothing under `section`; None when nothing looks so."""
    names = [
        f"{before}{name}"
        for before, level, _ in _levels(document, section)
        for name in _groups_like_ours(level)
    ]
    return _outside(names, section) if names else None


Level = tuple[str, Mapping[object, object], tuple[str, ...]]
"""A mapping on the way to the section: its name with a dot, itself, what comes further below."""


def _levels(document: object, section: tuple[str, ...]) -> Iterator[Level]:
    level = document
    for depth, name in enumerate(section):
        if not isinstance(level, Mapping):
            return
        yield "".join(f"{part}." for part in section[:depth]), level, section[depth + 1 :]
        level = level.get(name)


def _surely_ours(
    before: str, level: Mapping[object, object], below: tuple[str, ...]
) -> Iterator[str]:
    groups = _groups_like_ours(level)
    for name, value in level.items():
        too_early = name in below and isinstance(value, Mapping)
        if too_early or _is_our_own_word(name) or (name in groups and len(groups) >= _MANY):
            yield f"{before}{name}"


def _is_our_own_word(name: object) -> bool:
    """Whether it is a setting that stands in no group: those have names that nobody else has."""
    return name in MemoryEngineSettings.model_fields and _group(name) is None


def _groups_like_ours(level: Mapping[object, object]) -> list[str]:
    """Names of groups that hold settings of ours and nothing else."""
    return [
        str(name)
        for name, value in level.items()
        if (group := _group(name)) is not None
        and isinstance(value, Mapping)
        and value
        and all(inner in group.model_fields for inner in value)
    ]


def _group(name: object) -> type[BaseModel] | None:
    field = MemoryEngineSettings.model_fields.get(str(name))
    kind = field.annotation if field else None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _outside(names: Sequence[str], section: tuple[str, ...]) -> str:
    stands = "stands" if len(names) == 1 else "stand"
    return (
        f"{', '.join(sorted(names))} {stands} outside {'.'.join(section)}, where the engine's "
        "settings are read"
    )


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"
