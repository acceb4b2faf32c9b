"""The command that reads files into memory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrata_memory.cli.answers import Answer, Json, counted, show, styled, table
from orchestrata_memory.cli.arguments import ClassificationOption
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.missing import waiting_note
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import engine_for, settings_of
from orchestrata_memory.ingest.base import Format
from orchestrata_memory.models import MemoryClassification

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrata_memory.cli.ingesting import IngestReport

PANEL = "Sessions and files"
_SHOWN_REFUSALS = 20


class Keys(StrEnum):
    """How memories are named."""

    STABLE = "stable"
    GENERATED = "generated"


async def ingest(
    options: Options,
    *,
    files: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Chat transcripts (JSON lines or JSON), LoCoMo's JSON, Markdown, plain text.",
        ),
    ],
    close_sessions: Annotated[
        bool, typer.Option("--close-sessions", help="Move what was stored to the graph for good.")
    ] = False,
    keys: Annotated[
        Keys,
        typer.Option(
            "--keys",
            help="stable: ingesting a file again stores nothing twice; generated: quicker.",
        ),
    ] = Keys.STABLE,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="What the files are; found out where it is not given."),
    ] = None,
    classification: ClassificationOption = MemoryClassification.PRIVATE,
) -> Answer:
    """Store what files hold: a message, turn or paragraph is a memory.

    Sessions and projects that a file names are used; else --session and --project, else the
    session is named after the file. When something is refused, the rest is stored all the same,
    and the exit code is 2.
    """
    from orchestrata_memory.cli.ingesting import Ingest, read_sources
    from orchestrata_memory.cli.progress import Bars

    limit_bytes = settings_of(options).limits.content_bytes
    sources = read_sources(files, limit_bytes=limit_bytes, form=form)
    async with engine_for(options, bulk=True) as engine:
        task = Ingest(
            engine,
            options,
            Bars(),
            stable_keys=keys is Keys.STABLE,
            classification=classification,
        )
        report = await task.run(sources, close_sessions=close_sessions)
    return Answer(
        document=_document(report),
        view=show(*_view(report)),
        exit_code=ExitCode.USAGE if report.refused else ExitCode.OK,
    )


def _document(report: IngestReport) -> Json:
    return {
        "entries": report.entries,
        "stored": sum(file.stored for file in report.files),
        "already_there": sum(file.already_there for file in report.files),
        "refused": [
            {"key": key, "problem": problem}
            for file in report.files
            for key, problem in file.refused
        ],
        "sessions": len(report.sessions),
        "closed_sessions": report.closed_sessions,
        "migrated": report.migrated,
        "seconds": round(report.seconds, 3),
        "entries_per_s": round(report.entries / report.seconds, 1) if report.seconds else 0.0,
        "settle_seconds": round(report.settle_seconds, 3),
        "settled": report.settled,
        "waits_for_graph": report.waits_for_graph,
        "files": [
            {
                "path": str(file.path),
                "stored": file.stored,
                "already_there": file.already_there,
                "refused": len(file.refused),
                "sessions": sorted(file.sessions),
            }
            for file in report.files
        ],
    }


def _view(report: IngestReport) -> list[RenderableType]:
    rows = [
        (file.path, file.stored, file.already_there, len(file.refused), len(file.sessions))
        for file in report.files
    ]
    columns = ("file", "stored", "already there", "refused", "sessions")
    rate = report.entries / report.seconds if report.seconds else 0.0
    lines: list[RenderableType] = [
        table("", columns, rows),
        (
            f"{counted(report.entries, 'memory', 'memories')} in {report.seconds:.1f} s "
            f"({rate:,.0f} a second); {_settled(report)}"
        ),
        *waiting_note(waits=report.waits_for_graph),
    ]
    if report.closed_sessions:
        lines.append(
            f"closed {counted(report.closed_sessions, 'session')}: "
            f"{counted(report.migrated, 'memory', 'memories')} moved to the graph"
        )
    refusals = [refusal for file in report.files for refusal in file.refused]
    lines += [styled(f"refused {key}: {why}", "red") for key, why in refusals[:_SHOWN_REFUSALS]]
    if len(refusals) > _SHOWN_REFUSALS:
        lines.append(styled(f"and {len(refusals) - _SHOWN_REFUSALS:,} more refused", "red"))
    return lines


def _settled(report: IngestReport) -> str:
    if report.settled:
        return f"the graph had all of it {report.settle_seconds:.1f} s later"
    return f"the graph did not have all of it within {report.settle_seconds:.1f} s"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "ingest", panel=PANEL)(ingest)
