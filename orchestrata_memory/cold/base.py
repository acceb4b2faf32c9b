"""The cold tier's contract: long-term memory as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.interfaces import PartHealth
from orchestrata_memory.models import AuditRecord, Delegation, MemoryRecord, MemoryScope


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdPut:
    """Write this version unless cold holds it or a newer one.

    Attributes:
        terms: The content's index terms, joined by blanks (see retrieval.analysis).
        vector: None when the text could not be embedded (yet); a vector of an older version is
            removed, one of the same version stays.
    """

    record: MemoryRecord
    terms: str
    vector: StoredVector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdDelete:
    """Remove the memory and remember the tombstone's version."""

    key: str
    version: int


ColdWrite = ColdPut | ColdDelete


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdVersion:
    """What cold knows of a key: the newest version, and whether that is a tombstone."""

    version: int
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """Pre-filter: what a caller can read by the rules as shipped.

    Attributes:
        volk_id: The caller: owner of, or named in `shared_with` of, what it reads.
        grantors: Volks that delegate to it, directly or through others.
        exact: Everything that passes may be read; false where a deployment's own rules may forbid
            some of it.
    """

    volk_id: str
    grantors: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdQuery:
    """A look-up for candidates; every filter holds before any cut.

    Attributes:
        terms: Index terms of the query; empty: no keyword look-up.
        vector: Query vector, unit length; None: no vector look-up.
        scope: Filters.
        readable: Pre-filter, or None to look at everything.
        count: How many candidates by keyword, and as many by vector.
        exclude: Keys whose newest state hot knows; they are left out.
    """

    terms: tuple[str, ...]
    vector: NDArray[np.float32] | None
    scope: MemoryScope
    readable: Readable | None
    count: int
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdDocument:
    """What a search reads of one version of a memory; shared between searches, so never changed.

    Attributes:
        terms: Its index terms in text order, duplicates kept.
        speaker, occurred_at, relevance: As the record says, worked out once.
        vector: float32, shape (dimension,), unit length, or None.
        tokens: Packed token vectors, or None.
        model: Model of the vectors, or None.
    """

    record: MemoryRecord
    terms: tuple[str, ...]
    speaker: str
    occurred_at: datetime
    relevance: float | None
    vector: NDArray[np.float32] | None = field(default=None, compare=False)
    tokens: bytes | None = None
    model: str | None = None

    @classmethod
    def of(
        cls,
        record: MemoryRecord,
        terms: Iterable[str],
        *,
        vector: NDArray[np.float32] | None = None,
        tokens: bytes | None = None,
        model: str | None = None,
    ) -> ColdDocument:
        """A document of a record."""
        return cls(
            record=record,
            terms=tuple(terms),
            speaker=record.speaker,
            occurred_at=record.occurred_at,
            relevance=record.relevance,
            vector=vector,
            tokens=tokens,
            model=model,
        )


@dataclass(slots=True, kw_only=True)
class ColdHit:
    """A memory found in the graph.

    Not frozen, as that takes three times as long to make and a search makes hundreds.

    Attributes:
        cosine: Cosine with the query vector; None without a query vector or a stored one.
    """

    document: ColdDocument
    cosine: float | None = None

    @property
    def record(self) -> MemoryRecord:
        return self.document.record


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdCandidates:
    """Answer to a `ColdQuery`.

    Attributes:
        hits: Each memory once.
        keyword_exhausted: Every memory of the scope that holds a term is among them.
        vector_exhausted: Every memory of the scope that has a vector is among them.
    """

    hits: tuple[ColdHit, ...]
    keyword_exhausted: bool
    vector_exhausted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStatistics:
    """Statistics of what one caller may read in one scope.

    Attributes:
        documents: Number of memories.
        average_length: Mean number of index terms of one.
        frequencies: Memories holding each asked term.
    """

    documents: int
    average_length: float
    frequencies: Mapping[str, int] = field(default_factory=dict)


class FindOrder(StrEnum):
    """Order of a find."""

    NEWEST = "newest"
    OLDEST = "oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A memory reached by traversal.

    Attributes:
        distance: Number of steps, from 1.
        via: Names of the steps of the shortest path: ``session``, ``task``, ``project``,
            ``summary``.
    """

    record: MemoryRecord
    distance: int
    via: tuple[str, ...]


class ColdStore(Protocol):
    """The cold tier.

    All methods may raise `MemoryUnavailableError` (try again later) or `MemoryStorageError`
    (trying again will not help).
    """

    # --- lifecycle -----------------------------------------------------------------------
    async def open(self) -> None:
        """Connect and create constraints and indexes where they are missing.

        Raises:
            MemoryConfigurationError: Wrong password, no such database, a vector index of another
                dimension.
        """
        ...

    async def close(self) -> None: ...

    async def health(self) -> PartHealth: ...

    # --- writes --------------------------------------------------------------------------
    async def apply(self, writes: Sequence[ColdWrite]) -> Mapping[str, str]:
        """Write a batch, guarded by version, idempotent; at most one write a key.

        Nodes and all relationships of a memory appear together.

        Returns:
            Key to problem for the writes that failed on their own; empty when all is well.

        Raises:
            MemoryUnavailableError: Nothing of the batch is confirmed.
        """
        ...

    async def attach_vectors(self, vectors: Mapping[str, StoredVector]) -> None:
        """Set vectors of memories whose version still matches."""
        ...

    async def put_delegations(self, delegations: Sequence[Delegation]) -> None: ...

    async def delegations(self) -> list[Delegation]: ...

    async def append_audit(self, records: Sequence[AuditRecord]) -> None:
        """Append; a record that is there already is left alone."""
        ...

    async def prune_audit(self, before: datetime) -> int:
        """Delete audit records older than `before`; the number deleted."""
        ...

    # --- reads ---------------------------------------------------------------------------
    async def versions(self, keys: Sequence[str]) -> dict[str, ColdVersion]:
        """Newest version of each key that cold knows, tombstones included."""
        ...

    async def get(self, keys: Sequence[str]) -> dict[str, MemoryRecord]:
        """Records of the live keys."""
        ...

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]: ...

    async def candidates(self, query: ColdQuery) -> ColdCandidates: ...

    async def statistics(
        self, terms: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> TermStatistics:
        """Statistics of the memories of the scope that pass; stored summaries are left out."""
        ...

    async def speakers(
        self, names: Sequence[str], scope: MemoryScope, readable: Readable | None
    ) -> frozenset[str]:
        """Which of the names (any case) speak in a memory of the scope; in stored spelling.

        Stored summaries are left out.
        """
        ...

    async def neighbours(
        self, slots: Sequence[tuple[str, str, int]], vector: NDArray[np.float32] | None
    ) -> list[ColdHit]:
        """Memories at the given (session_id, volk_id, position); gaps are left out."""
        ...

    async def find(
        self,
        scope: MemoryScope,
        *,
        tags: Sequence[str] = (),
        match_all: bool = True,
        readable: Readable | None,
        order: FindOrder = FindOrder.NEWEST,
        limit: int,
        offset: int = 0,
        include_summaries: bool = False,
    ) -> list[MemoryRecord]:
        """Memories by tags (all or any of them) and scope, by `created_at` and key."""
        ...

    async def related(
        self, key: str, *, depth: int, limit: int, readable: Readable | None
    ) -> list[Related]:
        """Memories reached over sessions, tasks, projects and summaries, nearest first."""
        ...

    async def summaries_of(self, keys: Sequence[str]) -> dict[str, list[MemoryRecord]]:
        """Stored summaries made directly from each key."""
        ...

    async def audit_of(self, key: str, *, limit: int) -> list[AuditRecord]: ...

    async def counts(self) -> dict[str, int]:
        """Live memories by census name: ``all`` and ``project:{id}`` for each project."""
        ...

    async def count_session(self, session_id: str) -> int: ...

    async def without_vectors(self, model: str, limit: int) -> list[MemoryRecord]:
        """Memories without a vector of `model`."""
        ...

    async def embedding_models(self) -> dict[str, int]:
        """Model name to number of memories whose vector it made."""
        ...
