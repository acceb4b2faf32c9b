"""What a command answers: a document for machines and a view for people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.models import MemoryEntry

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Json = dict[str, object]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and newline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of a command.

    Attributes:
        document: What ``--json`` prints.
        view: Draws the same for people; called only then.
        exit_code: See `ExitCode`.
    """

    document: Json
    view: Callable[[Console], None]
    exit_code: ExitCode = ExitCode.OK


def plain(value: object) -> object:
    """A value as JSON can hold it: times in ISO 8601, dataclasses as objects."""
    if isinstance(value, datetime | Enum | Path):
        return _plain_scalar(value)
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    return value


def _plain_scalar(value: datetime | Enum | Path) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    return value.value if isinstance(value, Enum) else str(value)


def dumps(document: object) -> str:
    """One JSON document, readable and in the order of its fields."""
    return json.dumps(plain(document), ensure_ascii=False, indent=2, default=str)


def entry_document(entry: MemoryEntry, *, embedding: bool = False) -> Json:
    """An entry for machines; its vector only when asked for."""
    document = plain(entry if embedding else replace(entry, embedding=None))
    assert isinstance(document, dict)  # noqa: S101 - a dataclass becomes an object
    if not embedding:
        del document["embedding"]
    return document


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    whole: Collection[str] = (),
) -> RenderableType:
    """A table; numbers to the right, and they and the columns in `whole` are not broken."""
    from rich.markup import escape
    from rich.table import Table

    drawn = Table(title=escape(visible(title)) or None, title_justify="left", header_style="bold")
    listed = [list(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(
            isinstance(row[number], int | float) for row in listed if row[number] is not None
        )
        drawn.add_column(
            column,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=numeric or column in whole,
        )
    for row in listed:
        drawn.add_row(*(_cell(value) for value in row))
    return drawn


def _cell(value: object) -> str:
    from rich.markup import escape

    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1 else f"{value:,.2f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    return escape(visible(str(value)))


def visible(text: str) -> str:
    """A text whose control characters are spelt out, so that none of it drives a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def shorten(text: str, width: int = 160) -> str:
    """One line of a text."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def entries_table(title: str, entries: Sequence[MemoryEntry]) -> RenderableType:
    """Entries as rows, what they say first and who, where, when under it; scores if any."""
    from rich.table import Table
    from rich.text import Text

    scored = any(entry.relevance_score is not None for entry in entries)
    drawn = Table(title=title or None, title_justify="left", header_style="bold", show_lines=True)
    if scored:
        drawn.add_column("score", justify="right", no_wrap=True)
    drawn.add_column("memory", overflow="fold", ratio=1)
    for entry in entries:
        told = Text.assemble(shorten(entry.content), "\n", (_circumstances(entry), "dim"))
        score = [_cell(entry.relevance_score)] if scored else []
        drawn.add_row(*score, told)
    return drawn


def _circumstances(entry: MemoryEntry) -> str:
    """Key, owner, session, time and tags of an entry, in one line."""
    said = entry.metadata.get("speaker"), entry.metadata.get("occurred_at")
    who, when = (str(value) if value else None for value in said)
    facts = [entry.key, who or entry.volk_id, entry.session_id, when or _cell(entry.created_at)]
    if entry.tags:
        facts.append(", ".join(f"#{tag}" for tag in entry.tags))
    return visible(" · ".join(facts))


def entry_table(entry: MemoryEntry) -> RenderableType:
    """One entry, field by field."""
    document = entry_document(entry)
    rows = [
        (name, _field(value)) for name, value in document.items() if value not in (None, [], {}, "")
    ]
    return table("", ("field", "value"), rows)


def _field(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return (
        str(value)
        if isinstance(value, str | int | float)
        else json.dumps(value, ensure_ascii=False)
    )


def show(*renderables: RenderableType) -> Callable[[Console], None]:
    """A view that prints the given things one after the other; a text as it is, see `styled`."""

    def view(console: Console) -> None:
        for item in renderables:
            console.print(styled(item) if isinstance(item, str) else item)

    return view


def styled(text: str, style: str = "") -> RenderableType:
    """A text, whatever it holds, in one of rich's styles."""
    from rich.text import Text

    return Text(visible(text), style=style)


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``1 session``, ``2,000 memories``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
