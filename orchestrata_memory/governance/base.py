"""The governance contract: who may do what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrata_memory.cold.base import Readable
from orchestrata_memory.interfaces import PartHealth
from orchestrata_memory.models import Delegation, MemoryClassification, MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An answer of the rules.

    Attributes:
        allowed: Permission; no answer means no.
        rule: The predicate asked, such as ``can_read_memory``.
        reason: In words, for the one who asked; names ids and rules, never content.
    """

    allowed: bool
    rule: str
    reason: str = ""


class Governance(Protocol):
    """Asks the rules. Facts about a memory come from its record at the moment of asking."""

    async def open(self) -> None:
        """Load the rules.

        Raises:
            MemoryGovernanceError: Prolog is missing (says how to install it), or a rule file is
                broken.
        """
        ...

    async def close(self) -> None: ...

    async def health(self) -> PartHealth: ...

    async def set_delegations(self, delegations: Sequence[Delegation]) -> None:
        """Replace the known delegations (revoked and expired ones may be among them)."""
        ...

    async def is_registered(self, volk_id: str) -> bool: ...

    async def can_store(self, volk_id: str, classification: MemoryClassification) -> Decision: ...

    async def can_read(self, volk_id: str, record: MemoryRecord) -> Decision: ...

    async def can_read_many(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[bool]:
        """`can_read_memory` for each record, in one go."""
        ...

    async def can_update(self, volk_id: str, record: MemoryRecord) -> Decision: ...

    async def can_share(self, volk_id: str, target: str, record: MemoryRecord) -> Decision: ...

    async def can_delete(self, volk_id: str, record: MemoryRecord) -> Decision: ...

    async def can_migrate(self, volk_id: str, session_id: str) -> Decision:
        """Whether `volk_id` may move everything of a session; a Volk's own is always its own."""
        ...

    async def can_delegate(self, volk_id: str, delegate: str) -> Decision: ...

    async def can_revoke(self, volk_id: str, delegate: str) -> Decision:
        """Whether `volk_id` may take back its delegation, also from a Volk that is gone."""
        ...

    async def can_audit(self, volk_id: str, owner: str | None, key: str) -> Decision:
        """Whether `volk_id` may read the audit trail of a key that `owner` owns or owned."""
        ...

    async def readable(self, volk_id: str) -> Readable | None:
        """The pre-filter for reads; None when a deployment's own rules may allow more.

        Where they may forbid some of what passes, it is not `exact`.
        """
        ...
