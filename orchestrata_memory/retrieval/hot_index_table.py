"""The hot index's data: every memory hot holds a copy of, ready to be filtered and matched.

Plain data structures without I/O: `HotIndex` keeps them equal to Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrata_memory.cold.base import Readable, TermStatistics
from orchestrata_memory.models import MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.base import Passage, Slot, slot_of
from orchestrata_memory.retrieval.bm25 import idf, saturated
from orchestrata_memory.retrieval.columns import NO_ROW, Columns, microseconds
from orchestrata_memory.retrieval.headers import header_of
from orchestrata_memory.retrieval.hot_index_entry import Entry, facets_of
from orchestrata_memory.retrieval.postings import Postings, RowSets
from orchestrata_memory.retrieval.weights import KEYWORD_REACH

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPREAD_LIMIT: Final = 2_000
_SELECTIONS: Final = 32


_NOWHERE: Final[dict[int, Entry]] = {}
"""The stream of those who have none; never written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows a caller may read in a scope, as far as the pre-filter says.

    Attributes:
        rows: Rising.
        mask: The same by row number.
    """

    rows: NDArray[np.int32]
    mask: NDArray[np.bool_]


class MemoryTable:
    """Rows, their columns, their terms, and who stands beside whom.

    Attributes:
        generation: Changes with every change of the data.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.columns = Columns()
        self._entries: dict[str, Entry] = {}
        self._by_row: dict[int, Entry] = {}
        self._streams: dict[tuple[str, str], dict[int, Entry]] = {}
        self._postings = Postings()
        self._facets: RowSets[tuple[str, str]] = RowSets()
        self._speakers: dict[str, dict[str, int]] = {}
        self._selections: dict[
            tuple[MemoryScope, Readable | None, bool], tuple[int, Selection]
        ] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    # --- changes -------------------------------------------------------------------------
    def put(self, record: MemoryRecord, terms: Sequence[str]) -> Entry:
        """Enter a memory, in place of an older version of it."""
        self.remove(record.key)
        relevance = record.relevance
        row = self.columns.add(record, length=len(terms), relevance=relevance or 0.0)
        entry = Entry(
            row=row,
            header=header_of(record),
            passage=Passage(
                key=record.key,
                version=record.version,
                slot=slot_of(record),
                terms=self._postings.add(row, terms),
                speaker=record.speaker,
                created_at=record.created_at,
                occurred_at=record.occurred_at,
                relevance=relevance,
            ),
        )
        self._entries[record.key] = self._by_row[row] = entry
        for facet in facets_of(entry):
            self._facets.add(facet, row)
        self._enter_speaker(entry)
        self._link(entry)
        self.generation += 1
        return entry

    def remove(self, key: str) -> Entry | None:
        """Take a memory out; what stood there, if anything."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        row = entry.row
        del self._by_row[row]
        self._leave_stream(entry)
        self.columns.unlink(row)
        self._postings.remove(row, entry.passage.terms)
        for facet in facets_of(entry):
            self._facets.discard(facet, row)
        self._leave_speaker(entry)
        self.columns.remove(row)
        self.generation += 1
        return entry

    # --- look-ups ------------------------------------------------------------------------
    def get(self, key: str) -> Entry | None:
        """The memory with that key."""
        return self._entries.get(key)

    def at(self, row: int) -> Entry:
        """The memory of a taken row."""
        return self._by_row[row]

    def keys(self) -> list[str]:
        """Keys of all memories."""
        return list(self._entries)

    def count(self, name: str, value: str) -> int:
        """Memories whose ``session``, ``project``, … is `value`."""
        return self._facets.size((name, value))

    def by_slot(self, slot: Slot) -> Entry | None:
        """The memory at a place of a stream."""
        session, volk, position = slot
        return self._streams.get((session, volk), _NOWHERE).get(position)

    def has_stream(self, slot: Slot) -> bool:
        """Whether anything stands in the slot's stream."""
        return slot[:2] in self._streams

    def around(self, entries: Iterable[Entry], offsets: Sequence[int]) -> list[Entry]:
        """What stands at the offsets from the entries in their streams, themselves left out."""
        positions: dict[tuple[str, str], set[int]] = {}
        for entry in entries:
            session, volk, position = entry.passage.slot
            if position > 0:
                positions.setdefault((session, volk), set()).add(position)
        found: list[Entry] = []
        for name, taken in positions.items():
            stream = self._streams.get(name, _NOWHERE)
            wanted = {position + offset for offset in offsets for position in taken} - taken
            found.extend([stream[position] for position in wanted if position in stream])
        return found

    def select(
        self, scope: MemoryScope, readable: Readable | None, *, summaries: bool = True
    ) -> Selection:
        """Rows in the scope that pass the pre-filter (None: all of the scope)."""
        name = (scope, readable, summaries)
        known = self._selections.pop(name, None)
        if known is None or known[0] != self.generation:
            known = (self.generation, self._select(scope, readable, summaries=summaries))
        self._selections[name] = known
        if len(self._selections) > _SELECTIONS:
            del self._selections[next(iter(self._selections))]
        return known[1]

    def tagged(
        self, rows: NDArray[np.int32], tags: Sequence[str], *, match_all: bool
    ) -> NDArray[np.int32]:
        """Those of the rows that have all of the tags, or any; all rows where none is named."""
        if not tags:
            return rows
        holding = [np.isin(rows, self._facets.rows(("tag", tag))) for tag in tags]
        return rows[(np.logical_and if match_all else np.logical_or).reduce(holding)]

    def speakers(self, names: Iterable[str], selection: Selection) -> frozenset[str]:
        """Which of the names (any case) speak in the selection, in stored spelling."""
        return frozenset(
            spelling
            for name in names
            for spelling in self._speakers.get(name.casefold(), ())
            if selection.mask[self._facets.rows(("speaker", spelling))].any()
        )

    # --- keywords ------------------------------------------------------------------------
    def statistics(self, terms: Iterable[str], selection: Selection) -> TermStatistics:
        """Statistics of the selection alone."""
        rows = selection.rows
        return TermStatistics(
            documents=len(rows),
            average_length=float(self.columns.length[rows].mean()) if len(rows) else 0.0,
            frequencies={
                term: int(np.count_nonzero(selection.mask[self._postings.get(term)[0]]))
                for term in terms
            },
        )

    def keyword_rows(
        self, terms: Sequence[str], selection: Selection, count: int
    ) -> tuple[NDArray[np.int32], bool]:
        """Up to `count` rows that hold a term or stand beside one that does, the best ones.

        As many again that hold a term and have the highest explicit relevance, which counts for
        more than any match.

        Returns:
            The rows, and whether every row of the selection that holds a term is among them.
        """
        own = np.zeros(self.columns.capacity, np.float32)
        self._score(terms, selection, own)
        holding = selection.rows[own[selection.rows] > 0]
        total = own.copy()
        self._spread(_best(holding, own, _SPREAD_LIMIT), own, total)
        matched = selection.rows[total[selection.rows] > 0]
        best = _best(matched, total, count)
        stated = holding[self.columns.relevance[holding] > 0]
        best = np.union1d(best, _best(stated, self.columns.relevance, count))
        return best, bool(np.isin(holding, best).all())

    def _score(
        self, terms: Sequence[str], selection: Selection, scores: NDArray[np.float32]
    ) -> None:
        rows = selection.rows
        if not len(rows):
            return
        length = self.columns.length
        average = np.float32(max(1.0, float(length[rows].mean())))
        for term in terms:
            holding, counts = self._postings.get(term)
            keep = selection.mask[holding]
            holding, found = holding[keep], counts[keep].astype(np.float32)
            if not len(holding):
                continue
            weight = np.float32(idf(len(holding), len(rows)))
            scores[holding] += weight * saturated(
                found, length[holding].astype(np.float32) / average
            )

    def _spread(
        self, holding: NDArray[np.int32], own: NDArray[np.float32], total: NDArray[np.float32]
    ) -> None:
        for distance, weight in KEYWORD_REACH.items():
            step = self.columns.after if distance > 0 else self.columns.before
            sources = targets = holding
            for _ in range(abs(distance)):
                targets = step[targets]
                there = targets != NO_ROW
                sources, targets = sources[there], targets[there]
            total[targets] += weight * own[sources]  # targets are distinct, as sources are

    # --- inside --------------------------------------------------------------------------
    def _select(
        self, scope: MemoryScope, readable: Readable | None, *, summaries: bool
    ) -> Selection:
        columns = self.columns
        rows = self._narrowest(scope)
        for column, wanted in (
            (columns.session, scope.session_id),
            (columns.task, scope.task_id),
            (columns.owner, scope.volk_id),
            (columns.project, scope.project_id),
            (columns.portfolio, scope.portfolio_id),
        ):
            if wanted is not None:
                rows = rows[column[rows] == columns.names.code(wanted)]
        if scope.date_from is not None:
            rows = rows[columns.created[rows] >= microseconds(scope.date_from)]
        if scope.date_to is not None:
            rows = rows[columns.created[rows] <= microseconds(scope.date_to)]
        if readable is not None:
            rows = rows[self._readable(rows, readable)]
        if not summaries:
            rows = rows[~columns.summary[rows]]
        mask = np.zeros(columns.capacity, np.bool_)
        mask[rows] = True
        return Selection(rows=rows, mask=mask)

    def _narrowest(self, scope: MemoryScope) -> NDArray[np.int32]:
        """Rows to look at: the smallest set of rows that one of the names has."""
        asked = [
            (name, value)
            for name, value in (
                ("session", scope.session_id),
                ("task", scope.task_id),
                ("owner", scope.volk_id),
                ("project", scope.project_id),
            )
            if value is not None
        ]
        if not asked:
            return self.columns.rows()
        return self._facets.rows(min(asked, key=self._facets.size))

    def _readable(self, rows: NDArray[np.int32], readable: Readable) -> NDArray[np.bool_]:
        columns = self.columns
        owned = columns.owner[rows] == columns.names.code(readable.volk_id)
        allowed: NDArray[np.bool_] = owned | columns.public[rows]
        for volk in (readable.volk_id, *readable.grantors):
            shared = self._facets.rows(("reader", volk))
            if len(shared):
                allowed |= np.isin(rows, shared, assume_unique=True)
        return allowed

    def _link(self, entry: Entry) -> None:
        session, volk, position = entry.passage.slot
        if position <= 0:
            return
        stream = self._streams.setdefault((session, volk), {})
        stream[position] = entry
        before, after = stream.get(position - 1), stream.get(position + 1)
        self.columns.link(
            entry.row,
            NO_ROW if before is None else before.row,
            NO_ROW if after is None else after.row,
        )

    def _leave_stream(self, entry: Entry) -> None:
        session, volk, position = entry.passage.slot
        stream = self._streams.get((session, volk), _NOWHERE)
        if stream.get(position) is entry:
            del stream[position]
            if not stream:
                del self._streams[session, volk]

    def _enter_speaker(self, entry: Entry) -> None:
        spellings = self._speakers.setdefault(entry.passage.speaker.casefold(), {})
        spellings[entry.passage.speaker] = spellings.get(entry.passage.speaker, 0) + 1

    def _leave_speaker(self, entry: Entry) -> None:
        folded = entry.passage.speaker.casefold()
        spellings = self._speakers[folded]
        spellings[entry.passage.speaker] -= 1
        if not spellings[entry.passage.speaker]:
            del spellings[entry.passage.speaker]
        if not spellings:
            del self._speakers[folded]


def _best(rows: NDArray[np.int32], scores: NDArray[np.float32], count: int) -> NDArray[np.int32]:
    """Up to `count` of the rows, best first."""
    values = scores[rows]
    if len(rows) > count:
        chosen = np.argpartition(values, len(rows) - count)[-count:]
        rows, values = rows[chosen], values[chosen]
    return rows[np.argsort(-values, kind="stable")]
