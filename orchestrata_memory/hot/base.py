"""The hot tier's contract: working memory, outbox, change log and audit stream.

Every write is one atomic server-side step: the entry, its index and tags, the pointer of its key,
the census, the outbox record, the change-log record, the audit record and the notification stand
together or not at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.interfaces import PartHealth
from orchestrata_memory.models import AuditRecord, Delegation, KeyState, MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class HotState:
    """What hot knows of one key.

    Attributes:
        state: See `KeyState`.
        version: Newest version known (of the entry, its tombstone or its cold copy); 0 if unknown.
        record: The newest version, from the hash, else from the outbox, else (state ``cold``)
            from a replica; None when hot has no copy.
        replica: True when `record` came from a replica.
        owner: The owner, also for ``deleted``; None if unknown.
        expires_at: When the hot copy's TTL ends; None without a hash.
    """

    state: KeyState
    version: int = 0
    record: MemoryRecord | None = None
    replica: bool = False
    owner: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVector:
    """Vectors of one version of one memory.

    Attributes:
        version: The version they were computed from.
        model: Name and revision of the model, such as ``all-MiniLM-L6-v2``.
        vector: float32, shape (dimension,), unit length.
        tokens: Packed token vectors for late interaction, or None (see embedding.token_vectors).
    """

    version: int
    model: str
    vector: NDArray[np.float32]
    tokens: bytes | None = None


class OutboxKind(StrEnum):
    """What an outbox record asks the cold tier to do."""

    PUT = "put"
    DELETE = "delete"
    DELEGATION = "delegation"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRecord:
    """One step to be written behind.

    Attributes:
        outbox_id: Stream id.
        kind: See `OutboxKind`.
        key: The memory's key; for a delegation ``delegator`` and ``delegate`` joined by a NUL.
        version: The version it brings.
        record: For a put the full record, `position` included.
        delegation: For a delegation its full state.
        deliveries: How often it was delivered before, 0 for the first time.
    """

    outbox_id: str
    kind: OutboxKind
    key: str
    version: int
    record: MemoryRecord | None = None
    delegation: Delegation | None = None
    deliveries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BadOutboxRecord:
    """An outbox record that cannot be read; it goes to the dead letters."""

    outbox_id: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that the cold tier kept refusing.

    Attributes:
        outbox_id: Among the dead letters; ascending with time.
        key: Empty where the record names none.
        problem: Why it was set aside; never content.
    """

    outbox_id: str
    key: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBatch:
    """What changed in hot since a cursor.

    Attributes:
        cursor: Pass it to the next call.
        keys: Changed keys, oldest change first, each once.
        complete: False when the log was trimmed behind the cursor: rebuild from `scan`.
        delegations_changed: A delegation was granted or revoked.
        counts: The census of the asked names at that moment; None where nothing is counted.
    """

    cursor: str
    keys: tuple[str, ...]
    complete: bool
    delegations_changed: bool = False
    counts: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Cold holds `version` of `key` (or knows it is deleted, or newer)."""

    outbox_id: str
    key: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """A stored summary that falls with its source: its newest version and home."""

    key: str
    version: int
    volk_id: str
    session_id: str
    project_id: str | None


class VersionConflictError(Exception):
    """The key's state is not the expected one; read it again. Internal to the engine."""


class HotStore(Protocol):
    """The hot tier. All methods may raise `MemoryUnavailableError`."""

    # --- lifecycle -----------------------------------------------------------------------
    async def open(self) -> None:
        """Connect, check the server (version, eviction, persistence), prepare groups and scripts.

        Raises:
            MemoryConfigurationError: Wrong password, a cluster, or a server that may evict keys.
        """
        ...

    async def close(self) -> None: ...

    async def health(self) -> PartHealth:
        """Reachability, memory, persistence, outbox length and age, dead letters."""
        ...

    # --- claims on explicit keys ---------------------------------------------------------
    async def claim(self, key: str, token: str) -> HotState:
        """Claim an explicit key for a minute.

        Returns:
            The key's state. Claimed when it is ``unknown`` or ``deleted``.

        Raises:
            VersionConflictError: Another caller holds the claim.
        """
        ...

    async def release_claim(self, key: str, token: str) -> None: ...

    # --- writes --------------------------------------------------------------------------
    async def insert(
        self, record: MemoryRecord, audit: AuditRecord, *, claim_token: str | None = None
    ) -> MemoryRecord:
        """Write a new memory; returns it with its position.

        Raises:
            VersionConflictError: The key is live, its tombstone is newer, or the claim is lost.
            MemoryBackpressureError: The outbox is full.
        """
        ...

    async def replace(
        self,
        record: MemoryRecord,
        audit: AuditRecord,
        *,
        expected_version: int,
        withdrawals: Sequence[Withdrawal] = (),
    ) -> None:
        """Write the next version of a live memory, home or cold-only, dropping every replica.

        Summaries made from the entry are withdrawn in the same step: those given, and those hot
        knows of.

        Raises:
            VersionConflictError: The newest version known to hot is not `expected_version`.
            MemoryBackpressureError: The outbox is full.
        """
        ...

    async def tombstone(
        self,
        record: MemoryRecord,
        audit: AuditRecord,
        *,
        withdrawals: Sequence[Withdrawal] = (),
        bounded: bool = True,
    ) -> None:
        """Delete `record`: a tombstone of version ``record.version + 1``, all copies dropped.

        Args:
            record: The newest version.
            audit: Written in the same step.
            withdrawals: Stored summaries that fall with it.
            bounded: Refuse it where the outbox is full.

        Raises:
            MemoryBackpressureError: The outbox is full.
            VersionConflictError: The newest version known to hot is not ``record.version``.
        """
        ...

    async def put_delegation(self, delegation: Delegation, audit: AuditRecord) -> None:
        """Grant or revoke.

        Raises:
            VersionConflictError: hot already holds this version or a newer one.
        """
        ...

    async def restore_delegations(self, delegations: Sequence[Delegation]) -> None:
        """Take over what cold knows where hot holds nothing newer. Idempotent."""
        ...

    # --- reads ---------------------------------------------------------------------------
    async def read(self, keys: Sequence[str]) -> dict[str, HotState]:
        """State of each key in one round trip; never changes a TTL."""
        ...

    async def delegations(self) -> list[Delegation]: ...

    async def changes_since(
        self, cursor: str | None, *, counted: Sequence[str] = ()
    ) -> ChangeBatch:
        """What changed since `cursor`; None gives the present end of the log and no keys.

        The census of the names in `counted` is of the same moment.
        """
        ...

    def scan(self) -> AsyncIterator[Sequence[str]]:
        """Every key that hot knows (live, pending, replica, tombstone), in batches."""
        ...

    async def census(self, names: Sequence[str]) -> dict[str, int | None]:
        """Live memories of both tiers by name; None where nothing is counted yet.

        Names: ``all``, ``project:{id}``, ``session:{id}``. Writes keep the counts exactly.
        """
        ...

    async def seed_census(self, counts: Mapping[str, int]) -> None:
        """Start counts that do not exist yet from what cold holds; others stay as they are."""
        ...

    # --- vectors -------------------------------------------------------------------------
    async def attach_vectors(self, vectors: Mapping[str, StoredVector]) -> None:
        """Keep vectors of live entries and replicas whose version still matches; skip others."""
        ...

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]:
        """Vectors of the keys that have one."""
        ...

    async def record_matches(self, scores: Mapping[str, Mapping[str, float]]) -> None:
        """Note relevance scores of a search's hits, by session and key, in one round trip."""
        ...

    # --- outbox --------------------------------------------------------------------------
    async def take(
        self, consumer: str, *, count: int, block_seconds: float
    ) -> list[OutboxRecord | BadOutboxRecord]:
        """Next records of the consumer group for `consumer`; waits up to `block_seconds`."""
        ...

    async def take_over(
        self, consumer: str, *, idle_seconds: float, count: int
    ) -> list[OutboxRecord | BadOutboxRecord]:
        """Records that another consumer (or this one's former life) left unconfirmed so long."""
        ...

    async def confirm(self, confirmations: Sequence[Confirmation]) -> list[str]:
        """Cold holds these: the records go, the keys are marked as safe in cold.

        A hot copy of a closed session at that version or an older one goes with its vectors, and
        so does a tombstone's pending state (both leave a short-lived marker with the version).

        Returns:
            Keys whose hot copy went.
        """
        ...

    async def bury(self, outbox_id: str, problem: str) -> None:
        """Move a record that keeps failing to the dead letters; the entry stays live in hot."""
        ...

    async def dead_letters(self, limit: int) -> list[DeadLetter]:
        """The oldest dead letters, at most `limit`, oldest first."""
        ...

    async def revive(self) -> int:
        """Put every dead letter back on the outbox; the number of records."""
        ...

    async def outbox_length(self) -> int: ...

    # --- sessions and migration ----------------------------------------------------------
    async def mark_closed(self, session_id: str) -> None: ...

    async def is_closed(self, session_id: str) -> bool: ...

    async def closed_sessions(self) -> list[str]:
        """Closed sessions that still have something in hot."""
        ...

    async def session_keys(self, session_id: str) -> dict[str, HotState]:
        """Home entries of a session (not replicas), pending outbox records included."""
        ...

    async def lock_session(self, session_id: str, token: str, seconds: float) -> bool:
        """Take or renew the session's migration lock."""
        ...

    async def unlock_session(self, session_id: str, token: str) -> None: ...

    async def move_out(self, key: str, version: int) -> bool:
        """Drop the hot copy if it is at `version` or older and nothing is pending."""
        ...

    async def drop_replicas(self, session_id: str) -> int:
        """Drop the replicas held for a session; the number dropped."""
        ...

    async def extend_ttl(self, key: str) -> None:
        """Give a hot copy whose migration failed the long TTL (7 days); never shortens."""
        ...

    # --- promotion -----------------------------------------------------------------------
    async def promote(self, session_id: str, record: MemoryRecord, vector: StoredVector) -> bool:
        """Copy a cold entry into an open session as a replica.

        False when the session is closed, or hot knows a newer version, a tombstone or a live
        copy. A replica that is there keeps its longer TTL.
        """
        ...

    # --- upkeep --------------------------------------------------------------------------
    async def sweep(self) -> dict[str, int]:
        """Restore hashes that expired before cold had them, collect what expiry left behind.

        Returns:
            Counts by kind: ``restored``, ``index``, ``tags``, ``vectors``, ``pointers``.
        """
        ...

    # --- audit ---------------------------------------------------------------------------
    async def append_audit(self, records: Sequence[AuditRecord]) -> None: ...

    async def pending_audit(self, count: int) -> list[tuple[str, AuditRecord]]:
        """Oldest audit records that cold does not hold yet, with their stream ids."""
        ...

    async def drained_audit(self, stream_ids: Sequence[str]) -> None:
        """Cold holds these; trim behind them."""
        ...

    async def audit_of(self, key: str) -> list[AuditRecord]:
        """Records of a key that are not drained yet."""
        ...
