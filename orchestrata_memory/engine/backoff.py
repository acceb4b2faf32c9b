"""Growing pauses between attempts, for each of many things on its own."""

from __future__ import annotations

import time
from collections.abc import Iterable

_MOST = 10_000


class Backoff:
    """When to try what again; keeps at most 10,000 things.

    Args:
        initial: Seconds before the first retry; each further one waits twice as long.
        limit: Longest pause in seconds.
    """

    def __init__(self, initial: float, *, limit: float) -> None:
        self._initial = initial
        self._limit = limit
        self._pauses: dict[str, tuple[float, float]] = {}

    def postpone(self, thing: str) -> None:
        """It failed: try it again later."""
        _, pause = self._pauses.get(thing, (0.0, self._initial / 2))
        pause = min(pause * 2, self._limit)
        if thing in self._pauses or len(self._pauses) < _MOST:
            self._pauses[thing] = (time.monotonic() + pause, pause)

    def forget(self, thing: str) -> None:
        """It is done."""
        self._pauses.pop(thing, None)

    def due(self, things: Iterable[str]) -> set[str]:
        """Of the things and of what waits, those whose pause is over."""
        now = time.monotonic()
        return {
            thing
            for thing in {*things, *self._pauses}
            if self._pauses.get(thing, (0.0, 0.0))[0] <= now
        }
