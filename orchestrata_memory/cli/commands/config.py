"""The command that shows the effective configuration."""

from __future__ import annotations

import typer

from orchestrata_memory.cli.answers import Answer, show, table
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.options import Options

PANEL = "This machine"


def config(options: Options) -> Answer:
    """Show the effective settings, without secrets, and where each comes from."""
    from orchestrata_memory.cli.effective import effective

    rows = effective(options)
    return Answer(
        document={
            "settings": {name: value for name, value, _ in rows},
            "origins": {name: source for name, _, source in rows},
        },
        view=show(table("", ("setting", "value", "from"), [(n, str(v), o) for n, v, o in rows])),
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "config", panel=PANEL)(config)
