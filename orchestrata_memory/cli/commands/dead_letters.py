"""The command on what the graph refused: dead-letters."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrata_memory.cli.answers import Answer, counted, plain, show, table
from orchestrata_memory.cli.arguments import LimitOption
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import engine_for
from orchestrata_memory.models.validation import check_limit

PANEL = "This machine"


async def dead_letters(
    options: Options,
    *,
    revive: Annotated[
        bool, typer.Option("--revive", help="Have all of them written to the graph again.")
    ] = False,
    limit: LimitOption = 100,
) -> Answer:
    """Show which memories the graph keeps refusing, and why; they stay in Redis until revived.

    For whoever runs the servers: every Volk's, by key and problem, never by content.
    """
    check_limit(limit)
    async with engine_for(options) as engine:
        letters = await engine.parts.hot.dead_letters(limit)
        revived = await engine.parts.hot.revive() if revive else 0
    rows = [(letter.outbox_id, letter.key, letter.problem) for letter in letters]
    drawn = table("Dead letters", ("id", "key", "problem"), rows) if rows else "no dead letters"
    return Answer(
        document={
            "count": len(letters),
            "dead_letters": [plain(letter) for letter in letters],
            "revived": revived,
        },
        view=show(drawn, *([f"revived {counted(revived, 'dead letter')}"] if revive else [])),
        exit_code=ExitCode.OK if rows or revived else ExitCode.NOTHING,
    )


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "dead-letters", panel=PANEL)(dead_letters)
