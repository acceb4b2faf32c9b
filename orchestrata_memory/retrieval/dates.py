"""Times spoken of in a query, and how close an entry's time comes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, datetime, timedelta
from typing import Final

LEAST_HALVING_AFTER: Final = timedelta(days=3)
LEAST_HALVING_BEFORE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
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
        """1 inside the span, halving with the distance from it.

        After the span it halves every half of the span's length (at least three days), because
        what happened is talked about for a while; before it four times as fast (at least every
        day), because plans are talked about less.
        """
        if not self.yearly:
            return self._closeness(moment)
        return max(
            span._closeness(moment)  # noqa: SLF001 - of the same class
            for year in (moment.year - 1, moment.year, moment.year + 1)
            if (span := self._in_year(year)) is not None
        )

    def _closeness(self, moment: datetime) -> float:
        length = self.end - self.start
        if moment < self.start:
            return _halved(self.start - moment, max(length / 8, LEAST_HALVING_BEFORE))
        if moment >= self.end:
            return _halved(moment - self.end, max(length / 2, LEAST_HALVING_AFTER))
        return 1.0

    def _in_year(self, year: int) -> TimeSpan | None:
        """This span in another year; a leap day falls on the day before where there is none."""
        if not 1 <= year < MAXYEAR:
            return None
        try:
            start = self.start.replace(year=year)
        except ValueError:
            start = self.start.replace(year=year, day=self.start.day - 1)
        return replace(self, start=start, end=start + (self.end - self.start), yearly=False)


def closeness(spans: Sequence[TimeSpan], moment: datetime) -> float:
    """How close a moment comes to the nearest of the spans; 0 without any."""
    return max((span.closeness(moment) for span in spans), default=0.0)


def _halved(distance: timedelta, every: timedelta) -> float:
    halvings = distance / every
    return float(0.5**halvings) if halvings < 64 else 0.0  # noqa: PLR2004 - nothing is left
