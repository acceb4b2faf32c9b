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
        self._waiting: dict[str, tuple[float, Iterator[float]]] = {}

    def postpone(self, thing: str) -> None:
        """It failed: try it again later."""
        if thing in self._waiting:
            _, retries = self._waiting[thing]
        elif len(self._waiting) < _MOST:
            retries = pauses(self._initial, limit=self._limit)
        else:
            return
        self._waiting[thing] = time.monotonic() + next(retries), retries

    def forget(self, thing: str) -> None:
        """It is done."""
        self._waiting.pop(thing, None)

    def due(self, things: Iterable[str]) -> set[str]:
        """Of the things and of what waits, those whose pause is over."""
        now = time.monotonic()
        resting = {thing for thing, (due_at, _) in self._waiting.items() if due_at > now}
        return {*things, *self._waiting} - resting
