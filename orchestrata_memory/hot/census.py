"""The census: live memories of both tiers by name.

Counts are kept by the scripts that add and delete, so a count that exists is exact. It begins
when it is seeded with what cold counts, and that is exact only if no write was on its way
meanwhile. Therefore: `census` notes for each missing name how often it was written so far
(``unseeded``) provided nothing waits in the outbox or among the dead letters; `seed_census`
takes a number only if that still holds. The number must have been counted in between. Otherwise
the name stays uncounted, hot is not taken for complete, and the next attempt may succeed: an
inexact count is never kept.

If everything together (``all``) is seeded with nothing, every other name counts from nothing too.
A count is kept for good (one small field for each session and project that has memories).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrata_memory.hot.connection import Connection
from orchestrata_memory.hot.part import HotPart

_NOTED = 10_000


class Census(HotPart):
    """Counts that tell whether hot holds all of a scope."""

    def __init__(self, redis: Connection, *, ttl_ms: int, long_ttl_ms: int, limit: int) -> None:
        super().__init__(redis, ttl_ms=ttl_ms, long_ttl_ms=long_ttl_ms, limit=limit)
        self._noted: dict[str, int] = {}

    async def census(self, names: Sequence[str]) -> dict[str, int | None]:
        """Counts by name; see `HotStore.census`."""
        if not names:
            return {}
        answers: list[Any] = await self._redis.run("census", *names)
        counts: dict[str, int | None] = {}
        for name, (count, written) in zip(names, answers, strict=True):
            counts[name] = None if count is None else int(count)
            if count is None and written is not None:
                self._note(name, int(written))
        return counts

    async def seed_census(self, counts: Mapping[str, int]) -> None:
        """Start missing counts; see `HotStore.seed_census`, and this module for when it does.

        A name that `census` was never asked for is taken only if it was never written to.
        """
        arguments: list[str | int] = []
        for name, count in counts.items():
            arguments += (name, count, self._noted.pop(name, 0))
        if arguments:
            await self._redis.run("seed_census", *arguments)

    def _note(self, name: str, written: int) -> None:
        if len(self._noted) >= _NOTED:
            self._noted.clear()
        self._noted[name] = written
