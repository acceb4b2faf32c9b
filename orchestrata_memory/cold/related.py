"""Memories reached by traversal: step by step, nearest first.

A step leads to another memory over one shared session, task or project, or over one direct edge
between a summary and its source. Only memories the caller can read are stepped on. A hub is passed
once: all that hangs on it was seen then, or the limit was reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrata_memory.cold.base import Readable, Related
from orchestrata_memory.cold.connection import GraphConnection
from orchestrata_memory.cold.dialect import Row
from orchestrata_memory.cold.filters import filters_of
from orchestrata_memory.cold.rows import is_whole, record_from
from orchestrata_memory.models import MemoryScope

STEPS = ("summary", "session", "task", "project")
"""Kinds of steps, the closest kind first."""


async def related(
    connection: GraphConnection, key: str, *, depth: int, limit: int, readable: Readable | None
) -> list[Related]:
    """See `ColdStore.related`.

    Traces: REQ-010-031
    """
    walk = _Walk(connection, key, limit=limit, readable=readable)
    frontier = [key] if await walk.may_start() else []
    for distance in range(1, depth + 1):
        reached: list[str] = []
        for kind in STEPS:
            if not frontier or walk.room <= 0:
                return walk.found
            reached += await walk.step(kind, frontier, distance)
        frontier = reached
    return walk.found


class _Walk:
    """A walk so far: the path to each memory seen, and the hubs passed, by kind."""

    def __init__(
        self, connection: GraphConnection, key: str, *, limit: int, readable: Readable | None
    ) -> None:
        self._connection = connection
        self._start = key
        self._limit = limit
        self._filters = filters_of(MemoryScope(), readable)
        self._paths: dict[str, tuple[str, ...]] = {key: ()}
        self._passed: dict[str, set[str]] = {kind: set() for kind in STEPS}
        self.found: list[Related] = []

    @property
    def room(self) -> int:
        """How many more may be found."""
        return self._limit - len(self.found)

    async def may_start(self) -> bool:
        """Whether the start is there and readable."""
        return bool(await self._read("readable_key", {"key": self._start}))

    async def step(self, kind: str, frontier: Sequence[str], distance: int) -> list[str]:
        """Take one kind of step from each memory of the frontier; the keys newly reached."""
        parameters = {
            "keys": frontier,
            "seen": list(self._paths),
            "passed": list(self._passed[kind]),
            "limit": self.room,
        }
        reached: list[str] = []
        for origin, hubs, values in await self._read(f"related_by_{kind}", parameters):
            if not is_whole(values):
                continue
            record = record_from(values)
            path = (*self._paths[origin], kind)
            self._paths[record.key] = path
            self._passed[kind].update(hubs)
            self.found.append(Related(record=record, distance=distance, via=path))
            reached.append(record.key)
        return reached

    async def _read(self, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        text = self._filters.fill(name)
        return await self._connection.read(text, {**self._filters.parameters, **parameters})
