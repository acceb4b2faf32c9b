"""Arguments that several commands share, and how their text becomes values."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime, time
from typing import Annotated, Any

import typer

from orchestrata_memory.models import MemoryClassification, MemoryScope

KeyArgument = Annotated[str, typer.Argument(help="Key of the memory.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", help="At most so many, 1 to 10,000.")]
TagsOption = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag; repeatable.")]
MetadataOption = Annotated[
    str | None, typer.Option("--metadata", help="A JSON object, such as '{\"relevance\": 0.8}'.")
]
ClassificationOption = Annotated[
    MemoryClassification, typer.Option("--classification", "-c", help="Who else may read it.")
]

_SCOPE = "Scope (all combined with AND)"
InSession = Annotated[
    str | None, typer.Option("--in-session", help="Session of origin.", rich_help_panel=_SCOPE)
]
InTask = Annotated[str | None, typer.Option("--in-task", help="Task.", rich_help_panel=_SCOPE)]
InProject = Annotated[
    str | None, typer.Option("--in-project", help="Project.", rich_help_panel=_SCOPE)
]
InPortfolio = Annotated[
    str | None, typer.Option("--in-portfolio", help="Portfolio.", rich_help_panel=_SCOPE)
]
OfVolk = Annotated[str | None, typer.Option("--of", help="Owner.", rich_help_panel=_SCOPE)]
From = Annotated[
    str | None,
    typer.Option(
        "--from", help="Created at this time or later: ISO 8601, UTC without an offset.",
        rich_help_panel=_SCOPE,
    ),
]  # fmt: skip
To = Annotated[
    str | None,
    typer.Option(
        "--to", help="Created at this time or earlier; a date means its end.",
        rich_help_panel=_SCOPE,
    ),
]  # fmt: skip


def scope_of(
    *,
    session: str | None,
    task: str | None,
    project: str | None,
    portfolio: str | None,
    volk: str | None,
    date_from: str | None,
    date_to: str | None,
) -> MemoryScope:
    """The scope that the options describe."""
    return MemoryScope(
        session_id=session,
        task_id=task,
        project_id=project,
        portfolio_id=portfolio,
        volk_id=volk,
        date_from=None if date_from is None else moment(date_from, "--from"),
        date_to=None if date_to is None else moment(date_to, "--to", end_of_day=True),
    )


def moment(text: str, option: str, *, end_of_day: bool = False) -> datetime:
    """An aware time from ISO 8601; UTC where no offset is given.

    Args:
        text: A date or a time.
        option: Its name, for the message.
        end_of_day: A bare date means its last microsecond, not its first.

    Raises:
        typer.BadParameter: It is neither.
    """
    try:
        if len(text) <= len("2025-01-31"):
            day = date.fromisoformat(text)
            return datetime.combine(day, time.max if end_of_day else time.min, tzinfo=UTC)
        value = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option}: {text!r} is not ISO 8601, such as 2025-01-31 or 2025-01-31T09:30+01:00"
        ) from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def metadata_of(text: str | None) -> dict[str, Any] | None:
    """The metadata a JSON text describes; None for None.

    Raises:
        typer.BadParameter: Not a JSON object.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"--metadata: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter("--metadata: a JSON object is wanted, in braces")
    return value


def content_of(text: str) -> str:
    """The content given, or standard input for ``-``.

    Raises:
        typer.BadParameter: Standard input is not UTF-8.
    """
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not UTF-8: {error.reason}") from None
