"""Growing pauses between attempts: of one thing, or for each of many on its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

_MOST = 10_000


def pauses(initial: float, *, limit: float) -> Iterator[float]:
    """Seconds to wait after each failure in a row: `initial`, then twice as long, to `limit`."""
    pause = min(initial, limit)
    while True:
        yield pause
        pause = min(pause * 2, limit)


class Backoff:
    """When to try what again; keeps at most 10,000 things.

    Args:
        initial: Seconds before the first retry; each further one waits twice as long.
        limit: Longest pause in seconds.
    """

    def __init__(self, initial: float, *, limit: float) -> None:
        self._initial = initial
        self._limit = limit
        self._pauses: dict[str, Iterator[float]] = {}
        self._due_at: dict[str, float] = {}

    def postpone(self, thing: str) -> None:
        """It failed: try it again later."""
        if thing not in self._pauses:
            if len(self._pauses) >= _MOST:
                return
            self._pauses[thing] = pauses(self._initial, limit=self._limit)
        self._due_at[thing] = time.monotonic() + next(self._pauses[thing])

    def forget(self, thing: str) -> None:
        """It is done."""
        self._pauses.pop(thing, None)
        self._due_at.pop(thing, None)

    def due(self, things: Iterable[str]) -> set[str]:
        """Of the things and of what waits, those whose pause is over."""
        now = time.monotonic()
        waiting = self._due_at
        return {thing for thing in {*things, *waiting} if waiting.get(thing, 0.0) <= now}
