"""The command that examines the machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from orchestrata_memory.cli.answers import Answer, plain, show, styled, visible
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.options import Options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrata_memory.cli.doctor.check import Check

PANEL = "This machine"
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


async def doctor(options: Options) -> Answer:
    """Say what is installed, running and reachable, with the fix for what is not."""
    from orchestrata_memory.cli.doctor.report import examine
    from orchestrata_memory.cli.runtime import settings_of
    from orchestrata_memory.config.loader import config_file

    settings = settings_of(options)
    checks = await examine(settings, config_file(options.config, os.environ))
    healthy = all(check.status != "fail" for check in checks)
    return Answer(
        document={"healthy": healthy, "checks": [plain(check) for check in checks]},
        view=show(_drawn(checks), _verdict(healthy=healthy)),
        exit_code=ExitCode.OK if healthy else ExitCode.CONFIGURATION,
    )


def _drawn(checks: list[Check]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    drawn = Table(header_style="bold")
    for column in ("", "what", "found, and what to do"):
        drawn.add_column(column, overflow="fold")
    for check in checks:
        style = _STYLES[check.status]
        found = Text(visible(check.detail))
        if check.fix:
            found.append(f"\n→ {visible(check.fix)}", style=style)
        drawn.add_row(Text(check.status, style=style), check.name, found)
    return drawn


def _verdict(*, healthy: bool) -> RenderableType:
    if healthy:
        return styled("the engine can run here", "green")
    return styled("the engine cannot run here yet: mend what failed", "red")


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "doctor", panel=PANEL)(doctor)
