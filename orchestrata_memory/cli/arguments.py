"""Arguments that several commands share, and how their text becomes values."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Annotated, Any

import typer

from orchestrata_memory.cli.option_groups import OptionGroup
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


def _filter(flag: str, help_text: str) -> object:
    return typer.Option(flag, help=help_text, rich_help_panel="Scope (all combined with AND)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeOptions(OptionGroup):
    """Filters of what is looked at."""

    in_session: Annotated[str | None, _filter("--in-session", "Session of origin.")] = None
    in_task: Annotated[str | None, _filter("--in-task", "Task.")] = None
    in_project: Annotated[str | None, _filter("--in-project", "Project.")] = None
    in_portfolio: Annotated[str | None, _filter("--in-portfolio", "Portfolio.")] = None
    of: Annotated[str | None, _filter("--of", "Owner.")] = None
    date_from: Annotated[
        str | None,
        _filter("--from", "Created at this time or later: ISO 8601, UTC without an offset."),
    ] = None
    date_to: Annotated[
        str | None, _filter("--to", "Created at this time or earlier; a date means its end.")
    ] = None

    def scope(self) -> MemoryScope:
        """The scope that they describe.

        Raises:
            typer.BadParameter: A date is none.
        """
        since, until = self.date_from, self.date_to
        return MemoryScope(
            session_id=self.in_session,
            task_id=self.in_task,
            project_id=self.in_project,
            portfolio_id=self.in_portfolio,
            volk_id=self.of,
            date_from=None if since is None else moment(since, "--from"),
            date_to=None if until is None else moment(until, "--to", end_of_day=True),
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
    except ValueError:
        raise typer.BadParameter("--metadata: holds a number of too many digits") from None
    except RecursionError:
        raise typer.BadParameter("--metadata: nested too deeply") from None
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
