"""The engine in a hundred lines: dictionaries, and the rules of who may what.

It knows nothing of tiers, outboxes or time to live: whatever those do, callers must see this.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrata_memory.errors import (
    MemoryAccessDeniedError,
    MemoryEngineError,
    MemoryKeyExistsError,
    MemoryNotFoundError,
    MemoryValidationError,
)
from orchestrata_memory.models import MemoryClassification, MemoryEntry

PRIVATE = MemoryClassification.PRIVATE
ROLE_FOR = {
    MemoryClassification.SHARED: "team_lead",
    MemoryClassification.SYSTEM: "system_admin",
}
HOPS = 3
UNCHANGED = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a caller sees of a memory, times left out."""

    key: str
    content: str
    owner: str
    session: str
    tags: tuple[str, ...] = ()
    classification: MemoryClassification = PRIVATE
    shared_with: tuple[str, ...] = ()
    version: int = 1

    @classmethod
    def of(cls, entry: MemoryEntry) -> View:
        return cls(
            key=entry.key,
            content=entry.content,
            owner=entry.volk_id,
            session=entry.session_id,
            tags=entry.tags,
            classification=entry.classification,
            shared_with=entry.shared_with,
            version=entry.version,
        )


Answer = View | bool | type[MemoryEngineError] | None


@dataclass
class Model:
    """The truth.

    Attributes:
        roles: Registered Volks and their roles.
        live: Live memories by key.
        versions: Newest version of every key ever used, tombstones included.
        created: When the live ones were created.
        sources: Of stored summaries: what they were made from.
        delegations: Standing (delegator, delegate) and their end.
        written: Operations that changed a key, as the audit trail must tell them.
    """

    roles: dict[str, tuple[str, ...]]
    live: dict[str, View] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    created: dict[str, datetime] = field(default_factory=dict)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    delegations: dict[tuple[str, str], datetime | None] = field(default_factory=dict)
    written: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    # --- rules ---------------------------------------------------------------------------
    def may_store(self, volk: str, classification: MemoryClassification) -> bool:
        role = ROLE_FOR.get(classification)
        return volk in self.roles and (role is None or role in self.roles[volk])

    def may_read(self, volk: str, key: str, now: datetime) -> bool:
        memory = self.live[key]
        direct = (
            memory.owner == volk
            or memory.classification is not PRIVATE
            or bool(set(memory.shared_with) & ({volk} | self._grantors(volk, now) - {memory.owner}))
        )
        sources = self.sources.get(key, ())
        return volk in self.roles and direct and all(self.may_read(volk, s, now) for s in sources)

    def _grantors(self, volk: str, now: datetime) -> set[str]:
        reached = {volk}
        for _ in range(HOPS):
            reached |= {
                a
                for (a, b), ends in self.delegations.items()
                if b in reached and a in self.roles and (ends is None or now < ends)
            }
        return reached - {volk}

    def readable(self, volk: str, now: datetime) -> list[View]:
        """Newest first."""
        keys = [key for key in self.live if self.may_read(volk, key, now)]
        return [self.live[k] for k in sorted(sorted(keys), key=self.created.__getitem__)[::-1]]

    # --- writes --------------------------------------------------------------------------
    def store(self, wanted: View, *, explicit: bool = True) -> Answer:
        if not self.may_store(wanted.owner, wanted.classification):
            return MemoryAccessDeniedError
        there = self.live.get(wanted.key)
        if explicit and there is not None:
            same = replace(there, version=1, shared_with=()) == wanted
            return there if same else MemoryKeyExistsError
        self.note(wanted.key, "store", wanted.owner)
        return self._put(wanted)

    def update(
        self,
        volk: str,
        key: str,
        *,
        content: str | None = None,
        tags: tuple[str, ...] | None = None,
        classification: MemoryClassification | None = None,
    ) -> Answer:
        if content is tags is classification is None:
            return MemoryValidationError
        memory = self.live.get(key)
        if memory is None:
            return MemoryNotFoundError
        if volk != memory.owner:
            return MemoryAccessDeniedError
        wanted = classification or memory.classification
        if wanted is not memory.classification and not self.may_store(volk, wanted):
            return MemoryAccessDeniedError
        self.note(key, "update", volk)
        return self._put(
            replace(
                memory,
                content=memory.content if content is None else content,
                tags=memory.tags if tags is None else tags,
                classification=wanted,
            )
        )

    def delete(self, volk: str, key: str) -> Answer:
        memory = self.live.get(key)
        if memory is None:
            return False
        if volk != memory.owner:
            return MemoryAccessDeniedError
        self.note(key, "delete", volk)
        self._drop(key)
        return True

    def share(self, volk: str, key: str, target: str) -> Answer:
        return self._readers(volk, key, "share", target, set.union)

    def unshare(self, volk: str, key: str, target: str) -> Answer:
        return self._readers(volk, key, "unshare", target, set.difference)

    def _readers(self, volk, key, operation, target, change) -> Answer:
        memory = self.live.get(key)
        if memory is None:
            return MemoryNotFoundError
        registered = {volk, target} if operation == "share" else {volk}
        if volk != memory.owner or not registered <= self.roles.keys():
            return MemoryAccessDeniedError
        if target == memory.owner:
            return MemoryValidationError
        readers = tuple(sorted(change(set(memory.shared_with), {target})))
        if readers == memory.shared_with:
            return memory
        self.note(key, operation, volk)
        return self._put(replace(memory, shared_with=readers))

    def keep_summary(self, summary: View, sources: tuple[str, ...], created: datetime) -> None:
        self.live[summary.key] = summary
        self.versions[summary.key] = summary.version
        self.sources[summary.key] = sources
        self.created[summary.key] = created
        self.note(summary.key, "store", summary.owner)

    def _put(self, memory: View) -> View:
        version = self.versions.get(memory.key, 0) + 1
        self.versions[memory.key] = version
        self._withdraw(memory.key)
        stands = self.live[memory.key] = replace(memory, version=version)
        return stands

    def _drop(self, key: str) -> None:
        del self.live[key], self.created[key]
        self.sources.pop(key, None)
        self.versions[key] += 1
        self._withdraw(key)

    def _withdraw(self, key: str) -> None:
        """Stored summaries fall with a source, and so do those made from them."""
        for summary in [each for each, of in self.sources.items() if key in of]:
            if summary in self.live:
                self._drop(summary)

    def note(self, key: str, operation: str, volk: str) -> None:
        self.written.setdefault(key, []).append((operation, volk))

    # --- delegations ---------------------------------------------------------------------
    def delegate(self, volk: str, to: str, ends: datetime | None) -> Answer:
        if volk == to or not {volk, to} <= self.roles.keys():
            return MemoryAccessDeniedError
        self.delegations[volk, to] = ends
        return True

    def revoke(self, volk: str, to: str) -> Answer:
        if volk not in self.roles:
            return MemoryAccessDeniedError
        return self.delegations.pop((volk, to), UNCHANGED) is not UNCHANGED
