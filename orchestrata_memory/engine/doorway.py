"""The one doorway of every operation: caller, lifecycle, rules, audit trail and events.

An operation enters with its name and key, asks for a decision, and leaves a record whatever the
outcome. Writes hand their audit record to the store, which writes it in the same atomic step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from orchestrata_memory.engine.audit import AuditTrail
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.errors import MemoryAccessDeniedError
from orchestrata_memory.governance.base import Decision
from orchestrata_memory.interfaces import Severity, Topic
from orchestrata_memory.models import AuditRecord, MemoryContext, current_context
from orchestrata_memory.models.validation import check_context

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operation on its way.

    Attributes:
        operation: Its name, such as ``store``.
        context: The caller.
        key: The key concerned, or None.
        at: When it entered.
    """

    operation: str
    context: MemoryContext
    key: str | None
    at: datetime

    @property
    def volk_id(self) -> str:
        """The caller's alias."""
        return self.context.volk_id

    def record(self, rule: str, *, outcome: str = "allowed", detail: str = "") -> AuditRecord:
        """The audit record of this call."""
        return AuditRecord(
            audit_id=uuid4().hex,
            operation=self.operation,
            volk_id=self.volk_id,
            session_id=self.context.session_id,
            key=self.key,
            rule=rule,
            outcome=outcome,
            detail=detail,
            at=self.at,
        )


class Doorway:
    """Lets operations in, and says no on behalf of the rules.

    Traces: REQ-010-045, REQ-010-047
    """

    def __init__(
        self, audit: AuditTrail, notices: Notices, ensure_running: Callable[[], None], clock: Clock
    ) -> None:
        self._audit = audit
        self._notices = notices
        self._ensure_running = ensure_running
        self._clock = clock

    def enter(self, operation: str, key: str | None = None) -> Call:
        """Begin an operation for the caller of the current task.

        Raises:
            MemoryLifecycleError: The engine does not run.
            MemoryContextError: No caller is set.
            MemoryValidationError: The caller's ids break the rules of ids.
        """
        self._ensure_running()
        context = check_context(current_context())
        return Call(operation=operation, context=context, key=key, at=self._clock())

    async def require(self, call: Call, decision: Decision, detail: str = "") -> None:
        """Let the call pass, or record and announce the denial.

        Args:
            call: Who wants what.
            decision: What the rules say.
            detail: What was wanted of the key, as the record of success would say it.

        Raises:
            MemoryAccessDeniedError: The decision is no.
        """
        if decision.allowed:
            return
        await self._audit.append(call.record(decision.rule, outcome="denied", detail=detail))
        await self._notices.emit(
            Topic.ACCESS_DENIED,
            {
                "operation": call.operation,
                "volk_id": call.volk_id,
                "key": call.key,
                "rule": decision.rule,
            },
            severity=Severity.WARNING,
        )
        raise MemoryAccessDeniedError(call.volk_id, decision.rule, call.key, decision.reason)

    async def note(self, call: Call, rule: str, detail: str = "") -> None:
        """Record an allowed operation that changed nothing; grouped with others."""
        await self._audit.append_later(call.record(rule, detail=detail))
