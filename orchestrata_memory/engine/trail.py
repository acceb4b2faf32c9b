"""What the audit trail of a key tells about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrata_memory.models import AuditRecord

OWNER: Final = "owner="
"""Begins the detail of a record that ends a memory: whose it was."""

_ENDS: Final = frozenset({"delete", "withdraw"})


def last_owner(trail: Sequence[AuditRecord]) -> str | None:
    """Who owned the key last, by what was done to it; None where the trail does not say.

    Only what changed something tells: an operation on a key that is gone is allowed to anyone, and
    noted.

    Args:
        trail: Oldest first.
    """
    for record in reversed(trail):
        if record.outcome != "allowed":
            continue
        if record.operation in _ENDS and record.detail.startswith(OWNER):
            return record.detail.removeprefix(OWNER)
        if record.operation == "store":
            return record.volk_id
    return None
