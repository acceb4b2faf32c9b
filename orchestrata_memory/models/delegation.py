"""Delegations: a Volk passes on what was shared with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """`delegator` passes on to `delegate` what was shared with it, never what it owns.

    Attributes:
        expires_at: Aware, UTC; None: until revoked.
        revoked: True once revoked; the record stays, so that the newest version wins.
        version: One more with every grant or revocation of this pair.

    Traces: REQ-010-048
    """

    delegator: str
    delegate: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked: bool = False
    version: int = 1
