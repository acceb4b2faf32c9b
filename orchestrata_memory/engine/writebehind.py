"""The write-behind worker: from the outbox to vectors and the cold tier.

Two stages joined by a bounded queue. The first takes records and embeds them, so that vectors
reach hot whatever the state of the graph; the second writes batches to cold and confirms. A record
leaves the outbox only by a confirmation, so after a crash at any point it is delivered again, and
every step may be done again without effect.

Each stage keeps a processor busy, the second one that of the graph, which may be on this machine.
Where there are no more than two, the stages take turns, so that one is left for those who wait.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import uuid4

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.config.settings import WorkerSettings
from orchestrata_memory.engine.background import cancel_and_wait, describe
from orchestrata_memory.engine.backoff import pauses
from orchestrata_memory.engine.model_check import ModelCheck
from orchestrata_memory.engine.outbox_batch import OutboxBatch
from orchestrata_memory.engine.vectorizing import Vectorizer
from orchestrata_memory.engine.withdrawing import Withdrawer
from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.hot.base import BadOutboxRecord, HotStore, OutboxRecord, StoredVector
from orchestrata_memory.retrieval.analysis import TextAnalyzer

log = logging.getLogger(__name__)

_STAGED_BATCHES = 4
_TAKE_BLOCK_SECONDS = 0.5
_POLL_SECONDS = 0.02
_STUCK_SECONDS = 10.0
"""A drain ends when nothing left the outbox for so long and the worker says why."""

_FEW_PROCESSORS = 2

T = TypeVar("T")

_STAGE = "write-behind: embedding"
_WRITE = "write-behind: writing to the graph"

_Staged = tuple[OutboxBatch, dict[str, StoredVector]]


class WriteBehind:
    """Owns the two stages.

    Traces: REQ-010-008, REQ-010-010
    """

    def __init__(
        self,
        hot: HotStore,
        cold: ColdStore,
        vectorizer: Vectorizer,
        analyzer: TextAnalyzer,
        settings: WorkerSettings,
        *,
        model_check: ModelCheck,
    ) -> None:
        self._hot = hot
        self._cold = cold
        self._withdrawer = Withdrawer(hot, cold)
        self._vectorizer = vectorizer
        self._analyzer = analyzer
        self._settings = settings
        self._model_check = model_check
        self._consumer = uuid4().hex
        self._staged: asyncio.Queue[_Staged] = asyncio.Queue(maxsize=_STAGED_BATCHES)
        self._turns = asyncio.Semaphore(1 if _processors() <= _FEW_PROCESSORS else 2)
        self._tasks: list[asyncio.Task[None]] = []
        self._next_takeover = 0.0
        self._in_flight: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._problems: dict[str, str] = {}

    @property
    def last_error(self) -> str | None:
        """Why the worker waits at present, or None."""
        return next(iter(self._problems.values()), None)

    def start(self) -> None:
        """Start both stages; nothing happens when they run."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._forever(_STAGE, self._stage), name=_STAGE),
                asyncio.create_task(self._forever(_WRITE, self._write), name=_WRITE),
            ]

    async def stop(self) -> None:
        """Stop both stages at once; what they held is delivered again."""
        for task in self._tasks:
            await cancel_and_wait(task)
        self._tasks = []
        self._staged = asyncio.Queue(maxsize=_STAGED_BATCHES)
        self._in_flight.clear()

    async def drain(self, timeout_seconds: float) -> bool:
        """Wait until the outbox is empty; False when it was not in time, or is stuck."""
        deadline = time.monotonic() + timeout_seconds
        least, moved_at = None, time.monotonic()
        while (left := await self._hot.outbox_length()) > 0:
            now = time.monotonic()
            if least is None or left < least:
                least, moved_at = left, now
            stuck = self.last_error is not None and now - moved_at > _STUCK_SECONDS
            if stuck or now > deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    async def _forever(self, stage: str, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._insist(stage, step)

    async def _insist(self, stage: str, step: Callable[[], Awaitable[T]]) -> T:
        """Do a step, again and again with growing pauses until it succeeds."""
        retries = pauses(
            self._settings.retry_initial_seconds, limit=self._settings.retry_max_seconds
        )
        while True:
            try:
                result = await step()
            except Exception as error:  # noqa: BLE001 - the outbox must go on whatever happens
                self._problem(stage, error)
                await asyncio.sleep(next(retries))
            else:
                self._problems.pop(stage, None)
                return result

    def _problem(self, stage: str, error: Exception) -> None:
        problem = describe(error)
        if self._problems.get(stage) != problem:
            log.warning("%s goes on trying: %s", stage, problem)
        self._problems[stage] = problem

    # --- first stage: take and embed -----------------------------------------------------
    async def _stage(self) -> None:
        records = await self._readable(await self._take())
        if not records:
            return
        self._in_flight.update(record.outbox_id for record in records)
        batch = OutboxBatch.of(records)
        vectors = await self._insist(_STAGE, lambda: self._embed(batch))
        await self._staged.put((batch, vectors))

    async def _take(self) -> list[OutboxRecord | BadOutboxRecord]:
        if time.monotonic() >= self._next_takeover:
            idle = self._settings.takeover_idle_seconds
            taken = await self._hot.take_over(
                self._consumer, idle_seconds=idle, count=self._settings.batch_size
            )
            if taken:
                return taken
            self._next_takeover = time.monotonic() + idle / 2
        return await self._hot.take(
            self._consumer,
            count=self._settings.batch_size,
            block_seconds=_TAKE_BLOCK_SECONDS,
        )

    async def _readable(
        self, taken: Sequence[OutboxRecord | BadOutboxRecord]
    ) -> list[OutboxRecord]:
        readable: list[OutboxRecord] = []
        for record in taken:
            if isinstance(record, BadOutboxRecord):
                await self._hot.bury(record.outbox_id, record.problem)
            elif record.outbox_id not in self._in_flight:
                readable.append(record)
        return readable

    async def _embed(self, batch: OutboxBatch) -> dict[str, StoredVector]:
        try:
            async with self._turns:
                vectors = await self._vectorizer.vectors(batch.puts)
        except MemoryEmbeddingError as error:
            # The graph gets the memories all the same; upkeep embeds them once the model works.
            log.warning("writing behind without vectors: %s", error)
            return {}
        await self._hot.attach_vectors(vectors)
        return vectors

    # --- second stage: write and confirm -------------------------------------------------
    async def _write(self) -> None:
        batch, vectors = await self._staged.get()
        failed = await self._insist(_WRITE, lambda: self._apply(batch, vectors))
        await self._insist(_WRITE, lambda: self._hot.confirm(batch.confirmations(failed)))
        try:
            await self._bury_hopeless(batch, failed)
        finally:  # what is left is delivered again
            self._in_flight.difference_update(record.outbox_id for record in batch.records)

    async def _apply(self, batch: OutboxBatch, vectors: dict[str, StoredVector]) -> dict[str, str]:
        # late embedding makes up for vectors that may not be written yet
        writes = await batch.writes(self._analyzer, vectors if self._model_check.passed else {})
        # first, as what is deleted no longer names its summaries
        await self._withdrawer.withdraw(await self._withdrawer.find(batch.newest))
        async with self._turns:
            failed = dict(await self._cold.apply(writes)) if writes else {}
        if batch.delegations:
            await self._cold.put_delegations(batch.delegations)
        return failed

    async def _bury_hopeless(self, batch: OutboxBatch, failed: dict[str, str]) -> None:
        """Set records aside that failed alone too often; others stay to be delivered again."""
        for record in batch.records:
            if record.key not in failed:
                self._failures.pop(record.outbox_id, None)
                continue
            self._failures[record.outbox_id] += 1
            failures = max(self._failures[record.outbox_id], record.deliveries + 1)
            if failures >= self._settings.max_deliveries:
                del self._failures[record.outbox_id]
                await self._hot.bury(record.outbox_id, failed[record.key])


def _processors() -> int:
    """Those this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
