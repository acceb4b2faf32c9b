"""Regular background work beside the write-behind worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.config.settings import AuditSettings, WorkerSettings
from orchestrata_memory.engine.background import Periodic
from orchestrata_memory.engine.census_taking import CensusTaker
from orchestrata_memory.engine.delegating import Delegations
from orchestrata_memory.engine.migrating import Migrator
from orchestrata_memory.engine.model_check import ModelCheck
from orchestrata_memory.engine.vectorizing import Vectorizer
from orchestrata_memory.hot.base import HotStore

_AUDIT_INTERVAL_SECONDS = 1.0
_CENSUS_INTERVAL_SECONDS = 5.0
_PRUNE_INTERVAL_SECONDS = 6 * 3600.0
_BATCH = 500
_EMBED_BATCH = 64


class Upkeep:
    """Sweeps, audit drain and retention, retries of migrations, late embeddings, the census.

    Traces: REQ-010-034
    """

    def __init__(
        self,
        *,
        hot: HotStore,
        cold: ColdStore,
        vectorizer: Vectorizer,
        migrator: Migrator,
        delegations: Delegations,
        census: CensusTaker,
        worker: WorkerSettings,
        audit: AuditSettings,
        clock: Callable[[], datetime],
        model_check: ModelCheck,
    ) -> None:
        self._hot = hot
        self._cold = cold
        self._vectorizer = vectorizer
        self._retention = timedelta(days=audit.retention_days)
        self._clock = clock
        self._delegations = delegations
        self._census = census
        self._reached = False
        self._model_check = model_check
        interval = worker.sweep_interval_seconds
        self._jobs = [
            Periodic("sweep", self._sweep, interval),
            Periodic("audit drain", self.drain_audit, _AUDIT_INTERVAL_SECONDS),
            Periodic("audit retention", self._prune_audit, _PRUNE_INTERVAL_SECONDS),
            Periodic("migration retry", migrator.retry_closed, worker.retry_max_seconds),
            Periodic("late embedding", self._embed_missing, interval),
            Periodic("census", census.count_asked, _CENSUS_INTERVAL_SECONDS),
            Periodic("graph connection", self.reach_graph, worker.retry_max_seconds),
        ]

    def start(self) -> None:
        """Start every job."""
        for job in self._jobs:
            job.start()

    async def stop(self) -> None:
        """Stop every job."""
        for job in self._jobs:
            await job.stop()

    def problems(self) -> dict[str, str]:
        """Jobs whose last run failed, and why."""
        return {job.name: job.last_error for job in self._jobs if job.last_error is not None}

    async def drain_audit(self) -> None:
        """Move the audit records that are in the stream now to cold.

        What arrives meanwhile is left for the next time: one transaction for each of them would
        keep the event loop and the graph busy as long as there is any traffic.
        """
        while pending := await self._hot.pending_audit(_BATCH):
            await self._cold.append_audit([record for _, record in pending])
            await self._hot.drained_audit([stream_id for stream_id, _ in pending])
            if len(pending) < _BATCH:
                return

    async def reach_graph(self) -> None:
        """Connect to the graph where that has not succeeded yet, and take over what it knows."""
        if not self._reached:
            await self._cold.open()
            await self._model_check.run()
            await self._delegations.restore()
            self._reached = True
        await self._census.begin()

    async def _sweep(self) -> None:
        await self._hot.sweep()

    async def _prune_audit(self) -> None:
        if self._retention:
            await self._cold.prune_audit(self._clock() - self._retention)

    async def _embed_missing(self) -> None:
        """Embed what cold has no vector of, each once; what fails keeps nobody else waiting."""
        if not self._model_check.passed:
            return
        failed: set[tuple[str, int]] = set()
        tried: set[tuple[str, int]] = set()
        while True:
            count = _EMBED_BATCH + len(failed)
            missing = await self._cold.without_vectors(self._vectorizer.model, count)
            versions = {(record.key, record.version): record for record in missing}
            failed |= tried & versions.keys()
            tried = versions.keys() - failed
            if tried:
                vectors = await self._vectorizer.vectors([versions[one] for one in tried])
                await self._cold.attach_vectors(vectors)
                await self._hot.attach_vectors(vectors)
            elif len(missing) < count:
                return
