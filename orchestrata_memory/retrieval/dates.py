"""Times spoken of in a query, and how close an entry's time comes to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeConstraint:
    """A span of time that a query speaks of.

    Attributes:
        start: Aware, UTC, inclusive.
        end: Aware, UTC, exclusive.
        yearly: The query names no year: the same span of every year counts.
    """

    start: datetime
    end: datetime
    yearly: bool = False

    def closeness(self, moment: datetime) -> float:
        """1 inside the span, falling to 0 with the distance from it."""
        length = self.end - self.start
        if moment < self.start:
            return 0.5 ** ((self.start - moment) / max(length, timedelta(days=1)))
        if moment >= self.end:
            return 0.5 ** ((moment - self.end) / max(length, timedelta(days=3)))
        return 1.0


def find_times(
    text: str, *, now: datetime, language: str = "english"
) -> tuple[TimeConstraint, ...]:
    """The times that the text speaks of, relative ones seen from `now` (aware)."""
    return ()
