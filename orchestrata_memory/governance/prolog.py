"""Governance by SWI-Prolog: facts in as terms, answers out, no answer means no.

The rules stand in ``rules/memory.pl`` and in a deployment's own files; nothing is decided here.
Every governance has its own module in the process's one Prolog, so several engines with other
rules and directories do not meet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from orchestrata_memory.cold.base import Readable
from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.errors import MemoryGovernanceError, MemoryValidationError
from orchestrata_memory.governance.base import Decision
from orchestrata_memory.governance.machine import DRIVER, PrologMachine
from orchestrata_memory.governance.rulebook import (
    READING,
    RuleSource,
    load,
    may_forbid_reading,
    read_rules,
    shipped_rules,
)
from orchestrata_memory.governance.terms import Compound, Prolog
from orchestrata_memory.interfaces import HealthStatus, PartHealth, VolkDirectory
from orchestrata_memory.models import (
    SYSTEM_VOLK,
    Delegation,
    MemoryClassification,
    MemoryRecord,
)
from orchestrata_memory.models.validation import check_identifier

log = logging.getLogger(__name__)

Result = TypeVar("Result")

INFERENCES: Final = 1_000_000
"""Steps a rule may take for one answer; about 50 ms, where the shipped rules take some dozens."""

PATIENCE: Final = 5.0
"""Seconds to wait for an answer before it counts as no."""

TROUBLE: Final = timedelta(minutes=5)
"""How long health tells of a question without an answer."""

CHUNK: Final = 256
"""Records a call; others get their turn in between."""

_NO_MEMORY: Final = "none"
_NOBODY: Final = 0.0  # never equal to an atom, so nobody owns it and no rule matches
_UNANSWERED: Final = {
    "raised": "a rule raised an error, which counts as no",
    "exhausted": "a rule took too many steps, which counts as no",
}


class PrologGovernance:
    """Asks the rules.

    Args:
        settings: The deployment's rule files.
        directory: Who is registered; its revision is asked before every question.
        clock: Now, aware; decides whether a delegation has expired.
        rules: The base rules in place of the package's.

    Traces: REQ-010-045, REQ-010-046, REQ-010-048, REQ-010-049
    """

    def __init__(
        self,
        settings: GovernanceSettings,
        directory: VolkDirectory,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rules: RuleSource | None = None,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._clock = clock
        self._rules = rules
        self._machine = PrologMachine.shared()
        self._module: str | None = None
        self._may_widen_reading = False
        self._may_forbid_reading = False
        self._revision: int | None = None
        self._reloading = asyncio.Lock()
        self._volks = 0
        self._skipped = 0
        self._delegations: dict[tuple[str, str], Delegation] = {}
        self._delegations_held = False
        self._handing_over = asyncio.Lock()
        self._asked = 0
        self._unanswered = 0
        self._unanswered_at = datetime.min.replace(tzinfo=UTC)
        self._last_problem = ""

    # --- lifecycle -----------------------------------------------------------------------
    async def open(self) -> None:
        """Load the rules and the directory; a second call does nothing.

        Raises:
            MemoryGovernanceError: Prolog is missing, a rule file is broken, or the directory
                cannot be asked.
        """
        if self._module is not None:
            return
        base = self._rules or shipped_rules()
        own = await asyncio.to_thread(self._read_own)
        module = self._machine.new_module()

        def begin(prolog: Prolog) -> tuple[frozenset[str], bool]:
            prolog.run(DRIVER, "new_rules", module)
            load(prolog, module, [base])
            return load(prolog, module, own), may_forbid_reading(prolog, module)

        defined, self._may_forbid_reading = await self._patiently(begin)
        self._may_widen_reading = not defined.isdisjoint(READING)
        self._module = module
        try:
            await self._sync_directory()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Forget the rules; a second call does nothing."""
        module, self._module = self._module, None
        if module is not None:
            self._revision = None
            self._delegations, self._delegations_held = {}, False
            await self._patiently(lambda prolog: prolog.run(DRIVER, "drop_rules", module))

    async def health(self) -> PartHealth:
        details = {
            "rule_files": len(self._settings.rule_files),
            "volks": self._volks,
            "delegations": len(self._delegations),
            "questions": self._asked,
            "unanswered": self._unanswered,
        }
        if self._module is None:
            return PartHealth(status=HealthStatus.STOPPED, details=details)
        try:
            await self.is_registered(SYSTEM_VOLK)
        except MemoryGovernanceError as error:
            return PartHealth(status=HealthStatus.UNHEALTHY, message=str(error), details=details)
        if self._clock() - self._unanswered_at < TROUBLE:
            message = f"rules gave no answer {self._unanswered} times: {self._last_problem}"
            return PartHealth(status=HealthStatus.DEGRADED, message=message, details=details)
        if self._skipped:
            message = f"{self._skipped} entries of the directory are no valid aliases"
            return PartHealth(status=HealthStatus.DEGRADED, message=message, details=details)
        return PartHealth(status=HealthStatus.HEALTHY, details=details)

    # --- facts ---------------------------------------------------------------------------
    async def set_delegations(self, delegations: Sequence[Delegation]) -> None:
        """Replace the known delegations; cheap when nothing changed.

        One caller at a time: who returns, even with nothing to do, finds them in force.

        Of one pair the newest version counts, also against one known from before: a list that was
        read earlier and comes later does not undo a revocation.
        """
        async with self._handing_over:
            module = self._open_module()
            newest: dict[tuple[str, str], Delegation] = {}
            for delegation in delegations:
                pair = (delegation.delegator, delegation.delegate)
                known = newest.get(pair) or self._delegations.get(pair)
                newest[pair] = delegation if known is None else max(delegation, known, key=_version)
            if newest == self._delegations and self._delegations_held:
                return
            # Until Prolog has answered nobody knows which it holds: the work of a caller that
            # gives up may be skipped or done, so then the next list is handed over in any case.
            self._delegations, self._delegations_held = newest, False
            facts = [_delegation_fact(d) for d in newest.values() if not d.revoked]
            await self._patiently(
                lambda prolog: prolog.run(DRIVER, "set_delegations", module, facts)
            )
            self._delegations_held = self._module == module  # not when closed meanwhile

    async def _sync_directory(self) -> None:
        """Take over the directory if it changed.

        Raises:
            MemoryGovernanceError: It cannot be asked; nothing is permitted then.
        """
        try:
            if await self._directory.revision() == self._revision:
                return
            async with self._reloading:
                revision = await self._directory.revision()
                if revision != self._revision:
                    await self._set_volks(await self._directory.volks())
                    self._revision = revision
        except MemoryGovernanceError:
            raise
        except Exception as error:
            raise MemoryGovernanceError(
                f"the directory of Volks cannot be asked ({type(error).__name__}); "
                "nothing is permitted until it can"
            ) from error

    async def _set_volks(self, volks: Mapping[str, frozenset[str]]) -> None:
        module = self._open_module()
        facts = [
            Compound("volk", (alias, [role for role in sorted(roles) if _is_name(role)]))
            for alias, roles in volks.items()
            if _is_name(alias)
        ]
        await self._patiently(lambda prolog: prolog.run(DRIVER, "set_volks", module, facts))
        self._volks, self._skipped = len(facts), len(volks) - len(facts)

    # --- questions -----------------------------------------------------------------------
    async def is_registered(self, volk_id: str) -> bool:
        return (await self._ask("registered", volk_id)).allowed

    async def can_store(self, volk_id: str, classification: MemoryClassification) -> Decision:
        return await self._ask("can_store_memory", volk_id, classification.value)

    async def can_read(self, volk_id: str, record: MemoryRecord) -> Decision:
        return await self._ask("can_read_memory", volk_id, record.key, memory=_memory(record))

    async def can_update(self, volk_id: str, record: MemoryRecord) -> Decision:
        return await self._ask("can_update_memory", volk_id, record.key, memory=_memory(record))

    async def can_delete(self, volk_id: str, record: MemoryRecord) -> Decision:
        return await self._ask("can_delete_memory", volk_id, record.key, memory=_memory(record))

    async def can_share(self, volk_id: str, target: str, record: MemoryRecord) -> Decision:
        return await self._ask(
            "can_share_memory", volk_id, target, record.key, memory=_memory(record)
        )

    async def can_migrate(self, volk_id: str, session_id: str) -> Decision:
        return await self._ask("can_migrate_session", volk_id, session_id)

    async def can_delegate(self, volk_id: str, delegate: str) -> Decision:
        return await self._ask("can_delegate", volk_id, delegate)

    async def can_revoke(self, volk_id: str, delegate: str) -> Decision:
        return await self._ask("can_revoke", volk_id, delegate)

    async def can_audit(self, volk_id: str, owner: str | None, key: str) -> Decision:
        facts = Compound("memory", (key, _NOBODY if owner is None else owner, _NOBODY, []))
        return await self._ask("can_read_audit", volk_id, key, memory=facts)

    async def can_read_many(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[bool]:
        """`can_read_memory` for each record; what gets no answer is denied."""
        await self._sync_directory()
        answers: list[bool] = []
        for start in range(0, len(records), CHUNK):
            answers += await self._read_chunk(volk_id, records[start : start + CHUNK])
        return answers

    async def _read_chunk(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[bool]:
        module, now = self._open_module(), self._clock().timestamp()

        def ask(prolog: Prolog) -> str:
            memories = [_memory(record) for record in records]
            arguments = (module, volk_id, memories, now, INFERENCES)
            return str(prolog.run(DRIVER, "ask_many", *arguments, outputs=1)[0])

        self._asked += len(records)
        try:
            answers = await self._machine.run(ask, timeout=PATIENCE)
        except TimeoutError:
            self._note_unanswered("can_read_memory", "no answer in time", len(records))
            return [False] * len(records)
        for outcome, code in (("raised", "e"), ("exhausted", "x")):
            if number := answers.count(code):
                self._note_unanswered("can_read_memory", _UNANSWERED[outcome], number)
        return [answer == "1" for answer in answers]

    async def readable(self, volk_id: str) -> Readable | None:
        """The pre-filter for reads; None when a deployment's rule files may allow more."""
        if self._may_widen_reading:
            return None
        await self._sync_directory()
        module, now = self._open_module(), self._clock().timestamp()

        def ask(prolog: Prolog) -> list[str]:
            arguments = (module, volk_id, now, INFERENCES)
            return list(prolog.run(DRIVER, "ask_grantors", *arguments, outputs=1)[0])

        return Readable(
            volk_id=volk_id,
            grantors=tuple(await self._patiently(ask)),
            exact=not self._may_forbid_reading,
        )

    async def _ask(
        self, rule: str, *arguments: str, memory: Compound | str = _NO_MEMORY
    ) -> Decision:
        await self._sync_directory()
        module, now = self._open_module(), self._clock().timestamp()
        question = Compound(rule, arguments)

        def ask(prolog: Prolog) -> list[str]:
            given = (module, question, memory, now, INFERENCES)
            return prolog.run(DRIVER, "ask", *given, outputs=2)

        self._asked += 1
        try:
            outcome, reason = await self._machine.run(ask, timeout=PATIENCE)
        except TimeoutError:
            self._note_unanswered(rule, "no answer in time")
            return Decision(allowed=False, rule=rule, reason="the rules gave no answer in time")
        if outcome in _UNANSWERED:
            self._note_unanswered(rule, reason or _UNANSWERED[outcome])
            reason = _UNANSWERED[outcome]
        return Decision(allowed=outcome == "allowed", rule=rule, reason=reason)

    # --- helpers -------------------------------------------------------------------------
    def _open_module(self) -> str:
        if self._module is None:
            raise MemoryGovernanceError("the rules are not loaded: open governance first")
        return self._module

    async def _patiently(self, work: Callable[[Prolog], Result]) -> Result:
        try:
            return await self._machine.run(work, timeout=PATIENCE)
        except TimeoutError:
            raise MemoryGovernanceError(
                f"Prolog gave no answer in {PATIENCE:g} s; is a rule waiting for something?"
            ) from None

    def _note_unanswered(self, rule: str, problem: str, number: int = 1) -> None:
        self._unanswered += number
        self._unanswered_at = self._clock()
        self._last_problem = f"{rule}: {problem}"
        log.warning("governance: %s counts as no for %d question(s)", self._last_problem, number)

    def _read_own(self) -> list[RuleSource]:
        return [read_rules(path) for path in self._settings.rule_files]


def _memory(record: MemoryRecord) -> Compound:
    """What the rules may know of a memory; never its content."""
    facts = (record.key, record.volk_id, record.classification.value, record.shared_with)
    return Compound("memory", facts)


def _delegation_fact(delegation: Delegation) -> Compound:
    expires = delegation.expires_at
    until = "never" if expires is None else expires.timestamp()
    return Compound("delegation", (delegation.delegator, delegation.delegate, until))


def _version(delegation: Delegation) -> int:
    return delegation.version


def _is_name(value: str) -> bool:
    try:
        check_identifier(value, "alias")
    except MemoryValidationError:
        return False
    return True
