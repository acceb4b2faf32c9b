"""Commands on sessions: close-session."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrata_memory.cli.answers import Answer, counted, show
from orchestrata_memory.cli.closing import close_session
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import engine_for
from orchestrata_memory.errors import MemoryAccessDeniedError

PANEL = "Sessions and files"


async def close(
    options: Options,
    *,
    session_id: Annotated[
        str | None, typer.Argument(help="The session; the caller's if omitted.")
    ] = None,
) -> Answer:
    """Close a session as the kernel does: all its memories move from Redis to the graph for good.

    Whoever may run commands here acts for the kernel, so any session can be closed.
    """
    session = session_id or options.session_id
    async with engine_for(options) as engine:
        caller = options.caller
        if not await engine.parts.governance.is_registered(caller):
            raise MemoryAccessDeniedError(caller, "registered", reason="it is not registered")
        closed = await close_session(engine, session)
    moved = counted(closed.migrated, "memory", "memories")
    text = f"closed {session}: {moved} moved to the graph"
    if closed.reasons:
        text += f", {closed.failed:,} to be tried again later ({'; '.join(closed.reasons)})"
    return Answer(
        document={
            "session_id": session,
            "migrated": closed.migrated,
            "failed": closed.failed,
            "reasons": list(closed.reasons),
        },
        view=show(text),
        exit_code=ExitCode.UNAVAILABLE if closed.reasons else ExitCode.OK,
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "close-session", panel=PANEL)(close)
