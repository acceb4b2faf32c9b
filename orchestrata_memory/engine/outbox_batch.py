"""A batch of outbox records and what has to be written for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrata_memory.cold.base import ColdDelete, ColdPut, ColdWrite
from orchestrata_memory.concurrency import in_slices
from orchestrata_memory.hot.base import Confirmation, OutboxKind, OutboxRecord, StoredVector
from orchestrata_memory.models import Delegation, MemoryRecord
from orchestrata_memory.retrieval.analysis import INLINE_CHARACTERS, TextAnalyzer


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxBatch:
    """Records of one take. Of several of one key only the newest is written, all are confirmed.

    Attributes:
        records: As taken.
        newest: Key to the record of its highest version.
    """

    records: tuple[OutboxRecord, ...]
    newest: Mapping[str, OutboxRecord]

    @classmethod
    def of(cls, records: Iterable[OutboxRecord]) -> OutboxBatch:
        """Group records."""
        taken = tuple(records)
        newest: dict[str, OutboxRecord] = {}
        for record in taken:
            known = newest.get(record.key)
            if known is None or record.version >= known.version:
                newest[record.key] = record
        return cls(records=taken, newest=newest)

    @property
    def puts(self) -> list[MemoryRecord]:
        """Memories to write."""
        return [item.record for item in self.newest.values() if item.record is not None]

    @property
    def delegations(self) -> list[Delegation]:
        """Delegations to write."""
        return [item.delegation for item in self.newest.values() if item.delegation is not None]

    async def writes(
        self, analyzer: TextAnalyzer, vectors: Mapping[str, StoredVector]
    ) -> list[ColdWrite]:
        """What to apply to cold."""

        def put(record: MemoryRecord) -> ColdWrite:
            terms = " ".join(analyzer.terms(record.content))
            return ColdPut(record=record, terms=terms, vector=vectors.get(record.key))

        deletes: list[ColdWrite] = [
            ColdDelete(key=item.key, version=item.version)
            for item in self.newest.values()
            if item.kind is OutboxKind.DELETE
        ]
        records = self.puts
        short = [record for record in records if len(record.content) <= INLINE_CHARACTERS]
        long = [record for record in records if len(record.content) > INLINE_CHARACTERS]
        puts = await in_slices(short, put)
        return [*deletes, *puts, *[await asyncio.to_thread(put, record) for record in long]]

    def confirmations(self, failed: Mapping[str, str]) -> list[Confirmation]:
        """Confirmations of every record whose key did not fail."""
        return [
            Confirmation(
                outbox_id=item.outbox_id, key=item.key, version=self.newest[item.key].version
            )
            for item in self.records
            if item.key not in failed
        ]
