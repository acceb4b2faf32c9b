"""Columns of the hot index: one row a memory, one array an attribute.

Filters of a search are comparisons over these arrays, so that a scope of 100,000 memories is
narrowed in about a millisecond. Rows are reused; names are kept as numbers while a row uses them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from orchestrata_memory.models import MemoryClassification, MemoryRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_ROW = -1
"""Stands where a row has no neighbour."""

NO_NAME = -1
"""Code of a name that no row uses, and of an attribute that is not set."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_CAPACITY = 256


def microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970, exact (no float in between)."""
    return (moment - _EPOCH) // _MICROSECOND


class Names:
    """Numbers for names, counted by use, so that a name no row uses costs nothing."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._uses: dict[int, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, name: str | None) -> int:
        """The number of `name`; `NO_NAME` when no row uses it."""
        return NO_NAME if name is None else self._codes.get(name, NO_NAME)

    def take(self, name: str | None) -> int:
        """The number of `name`, used once more."""
        if name is None:
            return NO_NAME
        code = self._codes.get(name)
        if code is None:
            code, self._next = self._next, self._next + 1
            self._codes[name], self._names[code], self._uses[code] = code, name, 0
        self._uses[code] += 1
        return code

    def release(self, code: int) -> None:
        """One row less uses the name of this number."""
        if code == NO_NAME:
            return
        self._uses[code] -= 1
        if not self._uses[code]:
            del self._uses[code], self._codes[self._names.pop(code)]


class Columns:
    """Attributes of the rows, and which rows are taken.

    Attributes:
        high: Rows 0 to high - 1 have been used; arrays are meaningful up to there.
        alive: Taken rows.
        owner, session, task, project, portfolio: Codes of names.
        created: Microseconds since 1970.
        public: Classification is not ``private``.
        summary: A stored summary.
        length: Number of index terms.
        relevance: Explicit relevance, 0 where none is given.
        before, after: Rows at the neighbouring positions of the stream, or `NO_ROW`.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.high = 0
        self.alive = np.zeros(_FIRST_CAPACITY, np.bool_)
        self.owner = np.full(_FIRST_CAPACITY, NO_NAME, np.int32)
        self.session = self.owner.copy()
        self.task = self.owner.copy()
        self.project = self.owner.copy()
        self.portfolio = self.owner.copy()
        self.created = np.zeros(_FIRST_CAPACITY, np.int64)
        self.public = np.zeros(_FIRST_CAPACITY, np.bool_)
        self.summary = np.zeros(_FIRST_CAPACITY, np.bool_)
        self.length = np.zeros(_FIRST_CAPACITY, np.int32)
        self.relevance = np.zeros(_FIRST_CAPACITY, np.float32)
        self.before = np.full(_FIRST_CAPACITY, NO_ROW, np.int32)
        self.after = self.before.copy()
        self._free: list[int] = []

    @property
    def capacity(self) -> int:
        """Number of rows the arrays have room for."""
        return len(self.alive)

    def add(self, record: MemoryRecord, *, length: int, relevance: float) -> int:
        """Take a row for `record`, whose content has `length` index terms."""
        row = self._row()
        take = self.names.take
        self.owner[row] = take(record.volk_id)
        self.session[row] = take(record.session_id)
        self.task[row] = take(record.task_id)
        self.project[row] = take(record.project_id)
        self.portfolio[row] = take(record.portfolio_id)
        self.created[row] = microseconds(record.created_at)
        self.public[row] = record.classification is not MemoryClassification.PRIVATE
        self.summary[row] = bool(record.sources)
        self.length[row] = length
        self.relevance[row] = relevance
        self.before[row] = self.after[row] = NO_ROW
        self.alive[row] = True
        return row

    def remove(self, row: int) -> None:
        """Give the row back."""
        for column in (self.owner, self.session, self.task, self.project, self.portfolio):
            self.names.release(int(column[row]))
            column[row] = NO_NAME
        self.alive[row] = False
        self._free.append(row)

    def link(self, row: int, before: int, after: int) -> None:
        """Make `row` the neighbour of the rows beside it (`NO_ROW` for none)."""
        self.before[row], self.after[row] = before, after
        if before != NO_ROW:
            self.after[before] = row
        if after != NO_ROW:
            self.before[after] = row

    def unlink(self, row: int) -> None:
        """Take `row` out of its neighbours' view."""
        before, after = int(self.before[row]), int(self.after[row])
        if before != NO_ROW:
            self.after[before] = NO_ROW
        if after != NO_ROW:
            self.before[after] = NO_ROW
        self.before[row] = self.after[row] = NO_ROW

    def rows(self) -> NDArray[np.int32]:
        """All taken rows, rising."""
        return np.flatnonzero(self.alive[: self.high]).astype(np.int32)

    def _row(self) -> int:
        if self._free:
            return self._free.pop()
        if self.high == self.capacity:
            self._grow()
        row, self.high = self.high, self.high + 1
        return row

    def _grow(self) -> None:
        more = self.capacity
        for name in ("alive", "created", "public", "summary", "length", "relevance"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros(more, column.dtype)]))
        for name in ("owner", "session", "task", "project", "portfolio", "before", "after"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.full(more, NO_ROW, column.dtype)]))
