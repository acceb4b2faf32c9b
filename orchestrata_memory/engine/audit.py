"""The audit trail's way in: to Redis, else to a local file, else the operation fails.

A denial is recorded before it is raised. Records of reads are grouped: they stand in a bounded
queue for some 20 ms and go together, so a crash of the process may lose the last of them, never
one of a write (its record is part of the write itself) nor one of a denial. While neither Redis
nor the file takes records, operations fail.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final

from orchestrata_memory.engine.audit_file import AuditFile
from orchestrata_memory.engine.background import cancel_and_wait
from orchestrata_memory.errors import MemoryAuditError, MemoryEngineError
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.interfaces import HealthStatus, PartHealth
from orchestrata_memory.models import AuditRecord

log = logging.getLogger(__name__)

QUEUE_LIMIT: Final = 10_000
_BATCH: Final = 500
_GROUP_SECONDS: Final = 0.02
_RETRY_SECONDS: Final = 1.0


class AuditTrail:
    """Writes audit records.

    Args:
        hot: Where they belong.
        file: Takes them while `hot` does not; replayed and removed afterwards.
        retry_seconds: For so long after a failure `hot` is left alone, so that operations do not
            each wait for its time-out.
        group_seconds: How long records of reads may wait for others.

    Traces: REQ-010-047
    """

    def __init__(
        self,
        hot: HotStore,
        *,
        file: Path,
        retry_seconds: float = _RETRY_SECONDS,
        group_seconds: float = _GROUP_SECONDS,
    ) -> None:
        self._hot = hot
        self._file = AuditFile(file)
        self._retry_seconds = retry_seconds
        self._group_seconds = group_seconds
        self._queue: asyncio.Queue[AuditRecord] = asyncio.Queue(QUEUE_LIMIT)
        self._unwritten: list[AuditRecord] = []
        self._task: asyncio.Task[None] | None = None
        self._broken = asyncio.Event()
        self._hot_rests_until = 0.0
        self._maybe_pending = True
        self._hot_problem = ""
        self._file_problem = ""
        self._damaged = 0

    # --- lifecycle -----------------------------------------------------------------------
    def start(self) -> None:
        """Start grouping and replaying; a second call does nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="orchestrata-memory audit")

    async def stop(self) -> None:
        """Write what is queued and end; a second call does nothing."""
        task, self._task = self._task, None
        if task is None:
            return
        await cancel_and_wait(task)
        try:
            await self.flush()
        except MemoryAuditError as error:
            left = len(self._unwritten) + self._queue.qsize()
            log.error("stopping with %d audit records that nothing took: %s", left, error)  # noqa: TRY400

    async def health(self) -> PartHealth:
        pending = await asyncio.to_thread(self._file.pending)
        details = {
            "queued": self._queue.qsize() + len(self._unwritten),
            "file": str(self._file.path),
            "file_pending": pending,
            "damaged_lines": self._damaged,
        }
        if self._broken.is_set():
            message = f"operations are refused: {self._both_problems()}"
            return PartHealth(status=HealthStatus.UNHEALTHY, message=message, details=details)
        if pending or self._hot_problem:
            message = f"records go to the file until Redis takes them: {self._hot_problem}"
            return PartHealth(status=HealthStatus.DEGRADED, message=message, details=details)
        if self._damaged:
            message = f"{self._damaged} damaged lines of the file were left beside it"
            return PartHealth(status=HealthStatus.DEGRADED, message=message, details=details)
        return PartHealth(status=HealthStatus.HEALTHY, details=details)

    # --- records -------------------------------------------------------------------------
    async def append(self, record: AuditRecord) -> None:
        """Write now; on return it is in Redis or on the disk.

        Raises:
            MemoryAuditError: Neither takes it.
        """
        await self._write([record])

    async def append_later(self, record: AuditRecord) -> None:
        """Write with the next group; waits while the queue is full.

        Raises:
            MemoryAuditError: Neither Redis nor the file takes records at present.
        """
        if self._task is None or self._broken.is_set():
            await self._write([record])
        else:
            await self._queue.put(record)

    async def flush(self) -> None:
        """Wait until everything queued is written.

        Raises:
            MemoryAuditError: Neither Redis nor the file takes it.
        """
        if self._task is None:
            while self._unwritten or not self._queue.empty():
                await self._write_group()
            return
        joined = asyncio.ensure_future(self._queue.join())
        broken = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait({joined, broken}, return_when=asyncio.FIRST_COMPLETED)
            if not joined.done():
                raise MemoryAuditError(self._both_problems())
        finally:
            joined.cancel()
            broken.cancel()
            await asyncio.wait({joined, broken})

    # --- the task ------------------------------------------------------------------------
    async def _run(self) -> None:
        while True:
            try:
                if await self._has_work():
                    await self._write_group()
                await self._replay()
            except MemoryAuditError as error:
                log.error("audit: %s", error)  # noqa: TRY400 - says all
                await asyncio.sleep(self._retry_seconds)

    async def _has_work(self) -> bool:
        """Wait for a record, or for the time of the next replay; then for others to join it."""
        if self._unwritten:
            return True
        wait = max(self._hot_rests_until - time.monotonic(), 0) if self._maybe_pending else None
        try:
            async with asyncio.timeout(wait):
                self._unwritten.append(await self._queue.get())
        except TimeoutError:
            return False
        await asyncio.sleep(self._group_seconds)
        return True

    async def _write_group(self) -> None:
        """Write the oldest queued records; they stay until that worked."""
        while len(self._unwritten) < _BATCH and not self._queue.empty():
            self._unwritten.append(self._queue.get_nowait())
        written = len(self._unwritten)
        await self._write(self._unwritten)
        self._unwritten.clear()
        for _ in range(written):
            self._queue.task_done()

    # --- where records go ----------------------------------------------------------------
    async def _write(self, records: Sequence[AuditRecord]) -> None:
        if not await self._to_hot(records):
            await self._to_file(records)
        self._broken.clear()

    async def _to_hot(self, records: Sequence[AuditRecord]) -> bool:
        if time.monotonic() < self._hot_rests_until:
            return False
        return await self._reached(self._hot.append_audit(records))

    async def _reached(self, step: Awaitable[object]) -> bool:
        """Whether hot did it; after a failure it is left alone for a while."""
        try:
            await step
        except (MemoryEngineError, OSError, TimeoutError) as error:
            self._hot_rests_until = time.monotonic() + self._retry_seconds
            self._hot_problem = _describe(error)
            return False
        self._hot_problem = ""
        return True

    async def _to_file(self, records: Sequence[AuditRecord]) -> None:
        self._maybe_pending = True
        try:
            await asyncio.to_thread(self._file.append, list(records))
        except OSError as error:
            self._file_problem = _describe(error)
            self._broken.set()
            raise MemoryAuditError(self._both_problems()) from error
        self._file_problem = ""

    async def _replay(self) -> None:
        """Bring the file's records to Redis when it takes records again."""
        if not self._maybe_pending or time.monotonic() < self._hot_rests_until:
            return
        try:
            if not await self._reached(self._hot.outbox_length()):
                return  # asked first, lest each attempt take a piece of the file aside
            for taken in await asyncio.to_thread(self._file.take):
                if not await self._replay_file(taken):
                    return
            self._maybe_pending = await asyncio.to_thread(self._file.pending)
        except OSError as error:
            self._hot_rests_until = time.monotonic() + self._retry_seconds
            log.warning("the audit file cannot be replayed: %s", _describe(error))

    async def _replay_file(self, taken: Path) -> bool:
        batches = self._file.read(taken, _BATCH)
        replayed = damaged = 0
        while batch := await asyncio.to_thread(next, batches, None):
            if batch.records and not await self._to_hot(batch.records):
                return False
            replayed += len(batch.records)
            damaged += batch.damaged
        await asyncio.to_thread(self._file.done, taken, damaged=damaged)
        self._damaged += damaged
        log.info("audit: %d records replayed from the file", replayed)
        if damaged:
            log.warning("audit: %d damaged lines of the file were skipped", damaged)
        return True

    def _both_problems(self) -> str:
        return (
            "audit records can be written neither to Redis "
            f"({self._hot_problem or 'away'}) nor to {self._file.path} "
            f"({self._file_problem or 'not writable'})"
        )


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
