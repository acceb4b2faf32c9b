"""Commands on the embedded servers: status and stop."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrata_memory.cli.answers import Answer, plain, show, table
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import settings_of

if TYPE_CHECKING:
    from orchestrata_memory.embedded.servers import EmbeddedServers

PANEL = "This machine"


def _servers(options: Options) -> EmbeddedServers:
    from orchestrata_memory.embedded.servers import EmbeddedServers

    return EmbeddedServers(settings=settings_of(options).embedded)


async def status(options: Options) -> Answer:
    """Show the embedded servers of the data directory; starts nothing."""
    servers = _servers(options)
    states = await servers.status()
    rows = [
        (name, state.phase, state.address, str(state.server_pid or ""), state.data)
        for name, state in states.items()
    ]
    running = any(state.running for state in states.values())
    return Answer(
        document={"data_dir": str(servers.data_dir), "servers": plain(states)},
        view=show(table("", ("server", "state", "address", "process", "data"), rows)),
        exit_code=ExitCode.OK if running else ExitCode.NOTHING,
    )


async def stop(
    options: Options,
    *,
    force: Annotated[bool, typer.Option("--force", help="Even while an engine uses them.")] = False,
) -> Answer:
    """Stop embedded servers that linger after the last command."""
    from orchestrata_memory.embedded.layout import PartFolder
    from orchestrata_memory.embedded.locks import is_locked
    from orchestrata_memory.errors import MemoryConflictError

    servers = _servers(options)
    states = await servers.status()
    running = {name: state.supervisor_pid for name, state in states.items() if state.supervisor_pid}
    for name in running:
        if not force and is_locked(PartFolder(servers.data_dir, name).users_lock):
            raise MemoryConflictError(
                f"an engine uses the {name} server: stop that engine first, or use --force"
            )
    for supervisor in running.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGTERM)
    await servers.stop(wait=True)
    names = ", ".join(running)
    return Answer(
        document={"data_dir": str(servers.data_dir), "stopped": list(running)},
        view=show(f"stopped: {names}" if names else "nothing runs"),
        exit_code=ExitCode.OK if running else ExitCode.NOTHING,
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(help="The embedded servers.", no_args_is_help=True)
    command(group, "status")(status)
    command(group, "stop")(stop)
    app.add_typer(group, name="servers", rich_help_panel=PANEL)
