"""A small world for the rules: Volks with roles, records, a directory and a clock that move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from orchestrata_memory.models import Delegation, MemoryClassification, MemoryRecord

START = datetime(2026, 3, 1, 12, tzinfo=UTC)

OWNER = "ENG:OWNER"
OTHER = "ENG:OTHER"
LEAD = "ENG:LEAD"
ADMIN = "OPS:ADMIN"
STRANGER = "ENG:STRANGER"
VOLKS = {
    OWNER: (),
    OTHER: (),
    LEAD: ("team_lead",),
    ADMIN: ("system_admin",),
    **{f"ENG:{letter}": () for letter in "ABCDE"},
}


def record(
    *,
    key: str = "key-1",
    owner: str = OWNER,
    classification: str = "private",
    shared_with: tuple[str, ...] = (),
    content: str = "canary content",
) -> MemoryRecord:
    return MemoryRecord(
        key=key,
        content=content,
        volk_id=owner,
        session_id="session-1",
        created_at=START,
        updated_at=START,
        content_hash="0",
        classification=MemoryClassification(classification),
        shared_with=shared_with,
    )


def delegation(
    delegator: str,
    delegate: str,
    *,
    expires_at: datetime | None = None,
    revoked: bool = False,
    version: int = 1,
) -> Delegation:
    return Delegation(
        delegator=delegator,
        delegate=delegate,
        created_at=START,
        expires_at=expires_at,
        revoked=revoked,
        version=version,
    )


class MovableClock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


class ChangingDirectory:
    """A kernel's directory: its revision grows with every change."""

    def __init__(self, volks: dict[str, tuple[str, ...]]) -> None:
        self.entries = {alias: frozenset(roles) for alias, roles in volks.items()}
        self.number = 1
        self.reads = 0
        self.broken = False

    def change(self, alias: str, roles: tuple[str, ...] | None) -> None:
        if roles is None:
            self.entries.pop(alias)
        else:
            self.entries[alias] = frozenset(roles)
        self.number += 1

    async def volks(self):
        self.reads += 1
        return dict(self.entries)

    async def revision(self) -> int:
        if self.broken:
            raise OSError("directory away")
        return self.number
