"""Records and audit records for the tests of the hot tier."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from typing import Any

import numpy as np

from orchestrata_memory.hot.base import Confirmation, OutboxRecord, StoredVector
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import AuditRecord, MemoryRecord

SESSION = "session-1"
OWNER = "ENG:ALPHA"


def record(
    key: str | None = None, content: str = "The pump runs hot.", **fields: Any
) -> MemoryRecord:
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "key": key or str(uuid.uuid4()),
        "content": content,
        "volk_id": OWNER,
        "session_id": SESSION,
        "created_at": now,
        "updated_at": now,
        "content_hash": hashlib.sha256(content.encode()).hexdigest(),
        "tags": ("pump", "heat"),
        "metadata": {"relevance": 0.5},
        "project_id": "project-1",
        "token_count": 4,
    }
    return MemoryRecord(**(values | fields))


def audit(operation: str = "store", key: str | None = None) -> AuditRecord:
    return AuditRecord(
        audit_id=uuid.uuid4().hex,
        operation=operation,
        volk_id=OWNER,
        session_id=SESSION,
        key=key,
        rule="can_store_memory",
        outcome="allowed",
        detail="",
        at=datetime.now(UTC),
    )


def later(old: MemoryRecord, **fields: Any) -> MemoryRecord:
    """The next version of a record."""
    changes: dict[str, Any] = {"version": old.version + 1, "updated_at": datetime.now(UTC)}
    return old.changed(**(changes | fields))


def vector(version: int = 1, seed: int = 0, *, tokens: bytes | None = None) -> StoredVector:
    values = np.random.default_rng(seed).standard_normal(384).astype(np.float32)
    return StoredVector(
        version=version, model="test", vector=values / np.linalg.norm(values), tokens=tokens
    )


async def store(
    hot: RedisHotStore, made: MemoryRecord | None = None, **fields: Any
) -> MemoryRecord:
    made = made or record(**fields)
    return await hot.insert(made, audit(key=made.key))


async def drain(hot: RedisHotStore, consumer: str = "worker") -> list[OutboxRecord]:
    """Take and confirm everything, as a worker whose cold tier takes it all."""
    taken: list[OutboxRecord] = []
    while batch := await hot.take(consumer, count=100, block_seconds=0):
        good = [each for each in batch if isinstance(each, OutboxRecord)]
        taken += good
        await hot.confirm([confirmation(each) for each in good])
    return taken


def confirmation(each: OutboxRecord) -> Confirmation:
    return Confirmation(outbox_id=each.outbox_id, key=each.key, version=each.version)
