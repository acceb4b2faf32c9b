"""Keeping a mirror of the hot tier equal to Redis.

Strictly consistent: `sync` reads the change log and takes over what it names, so that an answer
given after it reflects every change acknowledged before it began, by whichever process. What has
no row but is known (tombstones, markers of what moved to cold) is kept too.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import time
from typing import Final

from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.hot.base import HotState, HotStore, StoredVector
from orchestrata_memory.models import KeyState, MemoryRecord
from orchestrata_memory.retrieval.analysis import INLINE_CHARACTERS, TextAnalyzer
from orchestrata_memory.retrieval.hot_index_sync import SharedRuns
from orchestrata_memory.retrieval.hot_index_table import MemoryTable
from orchestrata_memory.retrieval.hot_index_vectors import EXACT_ROWS, VectorMatrix

_READ_BATCH: Final = 500
_RECHECK_SECONDS: Final = 900.0
"""After so long a tombstone or marker is looked up again; hot keeps them for ten minutes."""

_WHOLE_KEPT: Final = 1_000
_CLOCK_SLACK_SECONDS: Final = 0.05


class HotMirror:
    """Mirror of a hot store: what it knows of every key, and how it stays so.

    Args:
        hot: What is mirrored.
        analyzer: Makes the index terms.
        embedder: Vectors of another model than its are left aside (their entries count as
            without one).
        on_delegations: Awaited within `sync` when a delegation was granted or revoked anywhere.
        exact_rows: Scopes with more vectors are searched approximately.

    Traces: REQ-010-027
    """

    def __init__(
        self,
        hot: HotStore,
        analyzer: TextAnalyzer,
        embedder: Embedder,
        *,
        on_delegations: Callable[[], Awaitable[None]] | None = None,
        exact_rows: int = EXACT_ROWS,
    ) -> None:
        self._hot = hot
        self._analyzer = analyzer
        self._embedder = embedder
        self._on_delegations = on_delegations
        self._table = MemoryTable()
        self._vectors = VectorMatrix(embedder.dimension, exact_rows=exact_rows)
        self._versions: dict[str, int] = {}
        self._deleted: set[str] = set()
        self._due: list[tuple[float, str]] = []
        self._due_at: dict[str, float] = {}
        self._cursor: str | None = None
        self._counted: set[str] = set()
        self._whole: dict[str, bool | None] = {}
        self._uncounted: set[str] = set()
        self._runs = SharedRuns(self._take_over)
        self.departures = 0
        """Memories that left hot for cold so far; each was here before and is there now."""

    @property
    def model_name(self) -> str:
        """The model whose vectors count."""
        return self._embedder.model_name

    # --- staying equal to Redis ----------------------------------------------------------
    async def sync(self, counted: str | None = None) -> bool | None:
        """Take over every change that was acknowledged before the call.

        Concurrent callers share a run where that misses nothing. The first run builds the index.

        Args:
            counted: A name of the census.

        Returns:
            Whether the index holds every live memory that the census counts under the name;
            None when that cannot be said because something changed at that moment.

        Raises:
            MemoryUnavailableError: Redis is down; the index stays as of the last run.
        """
        if counted is not None:
            self._counted.add(counted)
        await self._runs.join()
        return None if counted is None else self._whole.get(counted)

    def take_uncounted(self) -> set[str]:
        """Names asked for since the last call that the census does not count yet."""
        taken, self._uncounted = self._uncounted, set()
        return taken

    def count(self, name: str) -> int:
        """Memories hot holds a copy of, by a name of the census."""
        kind, _, value = name.partition(":")
        return self._table.count(kind, value) if value else len(self._table)

    def foresee(self, key: str, version: int, *, deleted: bool) -> None:
        """Know of a change that this process was acknowledged, before the next run reads it.

        Should Redis be lost in between, what the graph still shows of the key is out of date.
        """
        if version <= self._versions.get(key, 0):
            return
        self._versions[key] = version
        if deleted:
            self._deleted.add(key)
        self._schedule(key, 0.0)

    async def close(self) -> None:
        """Stop what runs in the background."""
        await self._runs.close()
        await self._vectors.close()

    async def settle(self) -> None:
        """Wait until the approximate index has caught up (benches and tests)."""
        await self._vectors.settle()

    async def _take_over(self) -> None:
        counted, self._counted = self._counted, set()
        names = sorted(counted)
        batch = await self._hot.changes_since(self._cursor, counted=names)
        if batch.delegations_changed:
            await self._delegations_changed()
        while self._cursor is None or not batch.complete:
            # from here on the log tells what the scan may miss, unless it is trimmed meanwhile
            cursor = (await self._hot.changes_since(None)).cursor
            await self._rebuild()
            await self._delegations_changed()
            self._cursor = cursor
            batch = await self._hot.changes_since(cursor, counted=names)
        changed = [*batch.keys, *self._take_due()]
        await self._reread(changed)
        self._cursor = batch.cursor
        self._note_whole(batch.counts, settled=not changed)
        self._vectors.keep_up()

    def _note_whole(self, counts: Mapping[str, int | None], *, settled: bool) -> None:
        """Compare with the census, which is of the index's own moment if nothing was read since."""
        if len(self._whole) > _WHOLE_KEPT:
            self._whole.clear()
        for name, count in counts.items():
            if count is None and len(self._uncounted) < _WHOLE_KEPT:
                self._uncounted.add(name)
            self._whole[name] = count == self.count(name) if settled or count is None else None

    async def _delegations_changed(self) -> None:
        if self._on_delegations is not None:
            await self._on_delegations()

    async def _rebuild(self) -> None:
        known = set(self._versions)
        async for keys in self._hot.scan():
            await self._reread(keys)
            known.difference_update(keys)
        await self._reread(list(known))  # what is gone is not in the scan

    async def _reread(self, keys: Sequence[str]) -> None:
        keys = list(dict.fromkeys(keys))
        for start in range(0, len(keys), _READ_BATCH):
            part = keys[start : start + _READ_BATCH]
            try:
                states, vectors = await asyncio.gather(
                    self._hot.read(part), self._hot.vectors(part)
                )
                terms = await self._analyse(states)
            except BaseException:
                for key in keys[start:]:  # none may be forgotten: the due list is read again
                    self._schedule(key, 0.0)
                raise
            for key in part:
                self._apply(key, states.get(key), terms.get(key), vectors.get(key))

    async def _analyse(self, states: Mapping[str, HotState]) -> dict[str, list[str]]:
        """Index terms of the records whose version the table does not hold."""
        fresh = [
            (key, state.record.content)
            for key, state in states.items()
            if state.record is not None and not self._holds(state.record)
        ]
        analyse = self._analyzer.terms
        if sum(len(content) for _, content in fresh) <= INLINE_CHARACTERS:
            return {key: analyse(content) for key, content in fresh}
        return await asyncio.to_thread(lambda: {key: analyse(content) for key, content in fresh})

    def _apply(
        self,
        key: str,
        state: HotState | None,
        terms: list[str] | None,
        vector: StoredVector | None,
    ) -> None:
        self._deleted.discard(key)
        self._due_at.pop(key, None)
        if state is None or state.state is KeyState.UNKNOWN:
            self._versions.pop(key, None)
            self._depart(key)
            return
        self._versions[key] = state.version
        if state.state is KeyState.DELETED or state.record is None:
            if state.state is KeyState.DELETED:
                self._remove(key)
                self._deleted.add(key)
            else:
                self._depart(key)
            self._schedule(key, time() + _RECHECK_SECONDS)
            return
        self._enter(state.record, terms)
        if state.expires_at is not None:
            # never at once again, should the clocks differ a little
            ends = max(state.expires_at.timestamp(), time() + _CLOCK_SLACK_SECONDS)
            self._schedule(key, ends)
        if vector is not None:
            self.attach(key, vector)

    def _enter(self, record: MemoryRecord, terms: list[str] | None) -> None:
        entry = self._table.get(record.key)
        if entry is not None and entry.header.version == record.version:
            return
        self._remove(record.key)
        self._table.put(record, terms or ())

    def _depart(self, key: str) -> None:
        self.departures += self._table.get(key) is not None
        self._remove(key)

    def _remove(self, key: str) -> None:
        entry = self._table.remove(key)
        if entry is not None:
            self._vectors.clear(entry.row)

    def _holds(self, record: MemoryRecord) -> bool:
        entry = self._table.get(record.key)
        return entry is not None and entry.header.version == record.version

    def _schedule(self, key: str, at: float) -> None:
        self._due_at[key] = at
        heapq.heappush(self._due, (at, key))

    def _take_due(self) -> list[str]:
        """Keys whose copy has expired, or whose state must be asked anew."""
        due, now = [], time()
        while self._due and self._due[0][0] <= now:
            at, key = heapq.heappop(self._due)
            if self._due_at.get(key) == at:
                due.append(key)
        return due

    def attach(self, key: str, vector: StoredVector) -> bool:
        """Keep a vector if it was made from the version the index holds, by its model."""
        entry = self._table.get(key)
        if (
            entry is None
            or entry.header.version != vector.version
            or vector.model != self.model_name
            or vector.vector.shape != (self._vectors.dimension,)
        ):
            return False
        entry.keep_tokens(vector.tokens)
        self._vectors.set(entry.row, vector.vector)
        return True
