"""The commands, one module for each group."""

from __future__ import annotations

import typer

from orchestrata_memory.cli.commands import (
    bench,
    config,
    dead_letters,
    demo,
    doctor,
    entries,
    ingest,
    queries,
    servers,
    sessions,
    sharing,
)


def register_all(app: typer.Typer) -> None:
    """Add every command to the application, in the order of its help."""
    for module in (
        demo,
        doctor,
        entries,
        queries,
        sharing,
        sessions,
        ingest,
        bench,
        config,
        servers,
        dead_letters,
    ):
        module.register(app)
