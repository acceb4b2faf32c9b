"""The hot index: what search and find ask of the hot tier, answered inside this process.

Memory of one entry of 20 terms, at 384 dimensions with token vectors: about 1.5 KB of header and
terms, 1.5 KB of vector, 1.1 KB of token vectors; content stays in Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrata_memory.cold.base import FindOrder, Readable, TermStatistics
from orchestrata_memory.models import MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.base import Found, Slot
from orchestrata_memory.retrieval.columns import microseconds
from orchestrata_memory.retrieval.headers import may_read
from orchestrata_memory.retrieval.hot_index_entry import Entry
from orchestrata_memory.retrieval.hot_index_mirror import HotMirror

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STABLE_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HotCandidates:
    """Candidates of the hot tier.

    Attributes:
        keyword_exhausted: Every memory of the scope that holds a term is among them.
        vector_exhausted: Every memory of the scope that has a vector is among them.
        complete: Every memory of the scope is among them.
    """

    found: Found
    keyword_exhausted: bool
    vector_exhausted: bool
    complete: bool


class HotIndex(HotMirror):
    """The mirror, and what can be asked of it. Answers are as of the last `sync`.

    Traces: REQ-010-012, REQ-010-013, REQ-010-015, REQ-010-016, REQ-010-017
    """

    # --- what is known -------------------------------------------------------------------
    def deleted_keys(self) -> frozenset[str]:
        """Keys that were deleted, as far as hot still has to say so."""
        return frozenset(self._deleted)

    def is_deleted(self, key: str) -> bool:
        """Whether the key's newest state is a tombstone, as far as hot still has to say so."""
        return key in self._deleted

    def known_version(self, key: str) -> int:
        """Newest version of the key that hot knew at the last sync; 0 if it knew none."""
        return self._versions.get(key, 0)

    def keys(self) -> list[str]:
        """Keys of all memories that hot holds a copy of."""
        return self._table.keys()

    def header(self, key: str) -> MemoryRecord | None:
        """The record of a copy, without its content."""
        entry = self._table.get(key)
        return None if entry is None else entry.header

    def vector(self, key: str) -> NDArray[np.float32] | None:
        """The vector of a copy."""
        entry = self._table.get(key)
        return None if entry is None else self._vectors.vector(entry.row)

    def speakers(
        self, names: Iterable[str], scope: MemoryScope, readable: Readable | None
    ) -> frozenset[str]:
        """Which of the names (any case) speak in the scope, in stored spelling."""
        return self._table.speakers(names, self._table.select(scope, readable, summaries=False))

    def statistics(
        self, terms: Iterable[str], scope: MemoryScope, readable: Readable | None
    ) -> TermStatistics:
        """Statistics of what the caller may read in the scope, and of nothing else.

        Stored summaries are left out: whether one may be read depends on its sources.
        """
        selection = self._table.select(scope, readable, summaries=False)
        return self._table.statistics(terms, selection)

    def context(
        self,
        slots: Iterable[Slot],
        vector: NDArray[np.float32] | None,
        readable: Readable | None,
    ) -> Found:
        """The memories at these places that pass the pre-filter."""
        entries = [self._table.by_slot(slot) for slot in slots]
        return self._readable_of([one for one in entries if one is not None], vector, readable)

    def has_stream(self, slot: Slot) -> bool:
        """Whether hot holds anything of the stream that this is a place of."""
        return self._table.has_stream(slot)

    def around(
        self,
        keys: Iterable[str],
        offsets: Sequence[int],
        vector: NDArray[np.float32] | None,
        readable: Readable | None,
    ) -> Found:
        """As `context`, at the offsets from these memories, themselves left out."""
        entries = map(self._table.get, keys)
        known = (entry for entry in entries if entry is not None)
        return self._readable_of(self._table.around(known, offsets), vector, readable)

    def _readable_of(
        self,
        entries: Iterable[Entry],
        vector: NDArray[np.float32] | None,
        readable: Readable | None,
    ) -> Found:
        return self._found([one for one in entries if may_read(one.header, readable)], vector)

    # --- candidates ----------------------------------------------------------------------
    async def candidates(
        self,
        terms: Sequence[str],
        vector: NDArray[np.float32] | None,
        scope: MemoryScope,
        readable: Readable | None,
        count: int,
        *,
        include_summaries: bool = True,
    ) -> HotCandidates:
        """Up to `count` candidates by keyword and as many by vector; filters hold before the cut.

        A scope of at most `count` memories comes back whole.
        """
        select = self._table.select
        for attempt in range(_STABLE_ATTEMPTS):
            selection = select(scope, readable, summaries=include_summaries)
            if len(selection.rows) <= count:
                return HotCandidates(
                    found=self._at(selection.rows, vector),
                    keyword_exhausted=True,
                    vector_exhausted=True,
                    complete=True,
                )
            generation = self._table.generation
            near, embedded = np.empty(0, np.int32), np.empty(0, np.int32)
            if vector is not None:
                embedded = self._vectors.with_vectors(selection.rows)
                near = await self._vectors.nearest(embedded, vector, count)
            if generation == self._table.generation:
                break
            if attempt == _STABLE_ATTEMPTS - 1:
                # rows may mean something else by now: keep those that are still in the scope
                selection = select(scope, readable, summaries=include_summaries)
                near = near[selection.mask[near]]
        words, keyword_exhausted = self._table.keyword_rows(terms, selection, count)
        rows = np.union1d(words, near)
        return HotCandidates(
            found=self._at(rows, vector),
            keyword_exhausted=keyword_exhausted,
            vector_exhausted=len(embedded) <= count,
            complete=False,
        )

    def _at(self, rows: NDArray[np.int32], vector: NDArray[np.float32] | None) -> Found:
        return self._found([self._table.at(row) for row in rows.tolist()], vector)

    def _found(self, entries: Sequence[Entry], vector: NDArray[np.float32] | None) -> Found:
        cosines: dict[str, float] = {}
        if vector is not None:
            rows = self._vectors.with_vectors(np.array([one.row for one in entries], np.int32))
            values = self._vectors.cosines(rows, vector)
            known = dict(zip(rows.tolist(), values.tolist(), strict=True))
            cosines = {one.header.key: known[one.row] for one in entries if one.row in known}
        return Found(
            passages={one.header.key: one.passage for one in entries},
            records={one.header.key: one.header for one in entries},
            cosines=cosines,
        )

    # --- vectors that are not there yet --------------------------------------------------
    def missing_vectors(
        self, scope: MemoryScope, readable: Readable | None, limit: int
    ) -> list[str]:
        """Keys of the newest memories of the scope without a vector, if they can have one."""
        rows = self._table.select(scope, readable).rows
        without = self._vectors.without_vectors(rows)
        newest = without[np.argsort(-self._table.columns.created[without], kind="stable")]
        entries = map(self._table.at, newest.tolist())
        return [
            entry.header.key
            for entry in islice((one for one in entries if not one.unembeddable), limit)
        ]

    def give_up_on_vector(self, key: str, version: int) -> None:
        """Note that the model fails on this version's text."""
        entry = self._table.get(key)
        if entry is not None and entry.header.version == version:
            entry.unembeddable = True

    # --- find ----------------------------------------------------------------------------
    def find(
        self,
        scope: MemoryScope,
        *,
        tags: Sequence[str],
        match_all: bool,
        readable: Readable | None,
        order: FindOrder,
        include_summaries: bool,
    ) -> list[MemoryRecord]:
        """Headers by tags and scope, ordered by `created_at`, then key."""
        selection = self._table.select(scope, readable, summaries=include_summaries)
        rows = self._table.tagged(selection.rows, tags, match_all=match_all)
        headers = (self._table.at(row).header for row in rows.tolist())
        return sorted(headers, key=lambda header: place_of(header, order))


def place_of(record: MemoryRecord, order: FindOrder) -> tuple[int, str]:
    """Where a record stands in a find: by `created_at`, then key, in both tiers alike."""
    created = microseconds(record.created_at)
    return (created if order is FindOrder.OLDEST else -created), record.key
