"""Commands on rights: share, unshare, delegate, revoke, audit."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrata_memory.cli.answers import Answer, entry_document, plain, show, table
from orchestrata_memory.cli.arguments import KeyArgument, LimitOption, moment
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.missing import graph_is_away, waiting_note
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import engine_for
from orchestrata_memory.models import AuditRecord, MemoryEntry

PANEL = "Rights and the audit trail"

VolkArgument = Annotated[str, typer.Argument(help="The other Volk; must be registered.")]


async def share(options: Options, key: KeyArgument, other: VolkArgument) -> Answer:
    """Let another Volk read an own memory."""
    async with engine_for(options) as engine:
        entry = await engine.share(key, other)
        return _readers(entry, waits=await graph_is_away(engine))


async def unshare(options: Options, key: KeyArgument, other: VolkArgument) -> Answer:
    """Take back that another Volk may read an own memory."""
    async with engine_for(options) as engine:
        entry = await engine.unshare(key, other)
        return _readers(entry, waits=await graph_is_away(engine))


def _readers(entry: MemoryEntry, *, waits: bool) -> Answer:
    readers = ", ".join(entry.shared_with) or "nobody"
    return Answer(
        document={"entry": entry_document(entry), "waits_for_graph": waits},
        view=show(f"{entry.key} is shared with {readers}", *waiting_note(waits=waits)),
    )


async def delegate(
    options: Options,
    *,
    other: VolkArgument,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", help="ISO 8601; until revoked if omitted.")
    ] = None,
) -> Answer:
    """Pass on to another Volk what was shared with the caller."""
    until = None if expires_at is None else moment(expires_at, "--expires-at")
    async with engine_for(options) as engine:
        delegation = await engine.delegate(other, expires_at=until)
        waits = await graph_is_away(engine)
    told = f"{options.caller} delegates to {other}" + (f" until {until}" if until else "")
    return Answer(
        document={"delegation": plain(delegation), "waits_for_graph": waits},
        view=show(told, *waiting_note(waits=waits)),
    )


async def revoke(options: Options, other: VolkArgument) -> Answer:
    """End a delegation of the caller."""
    async with engine_for(options) as engine:
        revoked = await engine.revoke(other)
        waits = revoked and await graph_is_away(engine)
    told = f"revoked from {other}" if revoked else f"{options.caller} does not delegate to {other}"
    return Answer(
        document={"delegate": other, "revoked": revoked, "waits_for_graph": waits},
        view=show(told, *waiting_note(waits=waits)),
        exit_code=ExitCode.OK if revoked else ExitCode.NOTHING,
    )


async def audit(options: Options, key: KeyArgument, limit: LimitOption = 100) -> Answer:
    """Show who did what to a memory, by which rule, with what outcome."""
    async with engine_for(options) as engine:
        records = await engine.audit_trail(key, limit=limit)
    columns = ("when", "operation", "who", "outcome", "rule and detail")
    rows = [
        (item.at, item.operation, item.volk_id, item.outcome, _rule_and_detail(item))
        for item in records
    ]
    return Answer(
        document={"key": key, "count": len(rows), "records": [plain(item) for item in records]},
        view=show(table(f"Audit trail of {key}", columns, rows) if rows else "nothing on record"),
        exit_code=ExitCode.OK if rows else ExitCode.NOTHING,
    )


def _rule_and_detail(item: AuditRecord) -> str:
    return f"{item.rule}\n{item.detail}" if item.detail else item.rule


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "share", panel=PANEL)(share)
    command(app, "unshare", panel=PANEL)(unshare)
    command(app, "delegate", panel=PANEL)(delegate)
    command(app, "revoke", panel=PANEL)(revoke)
    command(app, "audit", panel=PANEL)(audit)
