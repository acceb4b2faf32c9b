"""The command that reads files into memory."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    del app
