"""The entry point ``orchestrata-memory``."""

from __future__ import annotations

import inspect
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrata_memory.cli.answers import dumps
from orchestrata_memory.cli.command import signature_with_common
from orchestrata_memory.cli.commands import register_all
from orchestrata_memory.cli.doctor.check import installed
from orchestrata_memory.cli.exits import ExitCode, describe, exit_code_of
from orchestrata_memory.cli.options import DEFAULT_ROLES, DEFAULT_VOLK, Options
from orchestrata_memory.errors import MemoryConfigurationError

PROGRAM = "orchestrata-memory"
DEBUG_VARIABLE = "ORCHESTRATA_MEMORY_DEBUG"

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""The root of typer's errors of usage, wherever this release of typer keeps it."""

_HELP = (
    "The memory of an agent platform: store, find, summarize, inject.\n\n"
    "Without configuration everything runs on this machine: embedded servers are started, and "
    f"the Volk {DEFAULT_VOLK} ({', '.join(DEFAULT_ROLES)}) is registered and calls, in a session "
    "of the day. The servers stay up for a minute after a command, so that the next one is quick; "
    f"`{PROGRAM} servers stop` ends them at once. Other Volks are named under "
    "`runtime.memory_engine.governance.volks` of a configuration file, or in the variable "
    'ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS, such as \'{"ENG:ALPHA": ["team_lead"]}\'.'
)


_SWITCH_SECONDS = 0.001
"""After how long a thread that computes hands the interpreter to the event loop, if that waits."""


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{PROGRAM} {installed(PROGRAM) or 'that is not installed'}\n")
        raise typer.Exit


_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ],
)


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name=PROGRAM,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=_HELP,
        epilog=f"Exit codes: {describe()}.",
    )

    def common(*, ctx: typer.Context, **given: object) -> None:
        ctx.obj = Options().overridden(given)

    signature, annotations = signature_with_common([_VERSION], with_env=True)
    common.__signature__ = signature  # type: ignore[attr-defined]
    common.__annotations__ = annotations
    app.callback()(common)
    register_all(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises.

    Args:
        arguments: Without the program's name; None takes those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    sys.setswitchinterval(_SWITCH_SECONDS)
    _log_to_standard_error()
    if any(_has_surrogates(argument) for argument in given):
        _complain("UsageError", "an argument is not valid UTF-8", as_json=as_json)
        return ExitCode.USAGE
    try:
        result = build()(args=given, prog_name=PROGRAM, standalone_mode=False)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except _USAGE_ERROR as error:
        _complain_of_usage(error, as_json=as_json)
        return ExitCode.USAGE
    except Exception as error:  # noqa: BLE001 - whatever it is, a person gets one clear line
        return _fail(error, as_json=as_json)
    return int(result or ExitCode.OK)


def _fail(error: Exception, *, as_json: bool) -> int:
    code = exit_code_of(error)
    message = _told(error)
    if code is ExitCode.BUG:
        message = f"internal error, please report it ({DEBUG_VARIABLE}=1 shows where): {message}"
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
    _complain(type(error).__name__, message, as_json=as_json)
    return code


def _told(error: Exception) -> str:
    """What an error says, in one line; a configuration may have several problems, a line each."""
    lines = str(error).split("\n") if isinstance(error, MemoryConfigurationError) else [str(error)]
    return "\n  ".join(" ".join(line.split()) for line in lines) or type(error).__name__


def _complain_of_usage(error: Exception, *, as_json: bool) -> None:
    """One line; nothing where the help was shown instead, as for no arguments at all."""
    message = getattr(error, "format_message", error.__str__)()
    context = getattr(error, "ctx", None)
    program = context.command_path if context else PROGRAM
    if message:
        _complain("UsageError", f"{message} (see `{program} --help`)", as_json=as_json)


def _complain(kind: str, message: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(dumps({"error": {"type": kind, "message": message}}) + "\n")
    else:
        sys.stderr.write(f"error: {message}\n")


def _has_surrogates(argument: str) -> bool:
    """Bytes that are no UTF-8 reach a program as lone surrogates."""
    return any("\ud800" <= character <= "\udfff" for character in argument)


class _ForPeople(logging.Formatter):
    """A line without the names of modules."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {record.getMessage()}"


_BACKGROUND = ("orchestrata_memory.engine.background", "orchestrata_memory.engine.writebehind")


def _is_for_people(record: logging.LogRecord) -> bool:
    """Background work that goes on trying says again what the command itself tells."""
    return record.levelno > logging.WARNING or record.name not in _BACKGROUND


def _log_to_standard_error() -> None:
    """Warnings in plain words; everything, with its origin, for who looks for a fault."""
    if os.environ.get(DEBUG_VARIABLE):
        detailed = "%(levelname)s %(name)s: %(message)s"
        logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format=detailed)
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_ForPeople())
    handler.addFilter(_is_for_people)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
