"""Records of the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """Who did what to which key, by which rule, with what outcome, when. Never content.

    Attributes:
        audit_id: UUID4 hex; makes writing it twice harmless.
        operation: Name of the operation, such as ``store``.
        volk_id: Who asked.
        session_id: The caller's session.
        key: The key concerned, or None for an operation on many.
        rule: The predicate asked, such as ``can_read_memory``, or an empty string.
        outcome: ``allowed``, ``denied`` or ``failed``.
        detail: Counts, versions, a classification change; never content or query text.
        at: Aware, UTC.

    Traces: REQ-010-047
    """

    audit_id: str
    operation: str
    volk_id: str
    session_id: str
    key: str | None
    rule: str
    outcome: str
    detail: str
    at: datetime
