"""The command that shows the effective configuration."""

from __future__ import annotations

import json

import typer

from orchestrata_memory.cli.answers import Answer, plain, show, table
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.options import Options

PANEL = "This machine"


def config(options: Options) -> Answer:
    """Show the effective settings, without secrets, and where each comes from."""
    from orchestrata_memory.cli.effective import effective

    rows = effective(options)
    columns = ("setting", "value", "from")
    told = [(name, _spelt(value), source) for name, value, source in rows]
    return Answer(
        document={
            "settings": {name: value for name, value, _ in rows},
            "origins": {name: source for name, _, source in rows},
        },
        view=show(table("", columns, told, whole=("setting",))),
    )


def _spelt(value: object) -> str:
    """A value as a configuration file would have it; nothing for none."""
    if value is None:
        return ""
    simple = plain(value)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "config", panel=PANEL)(config)
