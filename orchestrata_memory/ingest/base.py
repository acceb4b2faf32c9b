"""What every format becomes, and how a fault of a file is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from orchestrata_memory.errors import MemoryValidationError


class Format(StrEnum):
    """Formats that can be read."""

    LOCOMO = "locomo"
    CHAT = "chat"
    CHAT_LINES = "chat-lines"
    MARKDOWN = "markdown"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestItem:
    """One memory to be stored.

    Attributes:
        content: Not blank, within the content limit.
        key: Stable: the same part of the same file has it again, and no other part has it.
        session_id: The session the file names, or None.
        speaker: Who said it, or None.
        occurred_at: When, aware, in UTC, or None.
        project_id: The project the file names, or None.
        task_id: The task the file names, or None.
        tags: Tags the file names.
    """

    content: str
    key: str
    session_id: str | None = None
    speaker: str | None = None
    occurred_at: datetime | None = None
    project_id: str | None = None
    task_id: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, decoded, without its end; numbered from 1."""

    number: int
    text: str


def fault(path: Path, line: int | None, problem: str) -> MemoryValidationError:
    """The error for `problem` in a file; `line` None is the file as a whole."""
    return MemoryValidationError(str(path) if line is None else f"{path}, line {line}", problem)


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a UTF-8 file, one after another, without a byte order mark.

    Raises:
        MemoryValidationError: A line is not UTF-8 or holds NUL, or the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                yield Line(number, _decode(path, number, data))
    except OSError as error:
        raise fault(path, None, f"cannot be read: {error.strerror}") from error


def _decode(path: Path, number: int, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise fault(path, number, "is not UTF-8; save the file as UTF-8") from error
    if "\0" in text:
        raise fault(path, number, "holds NUL; is it a text file?")
    return text.rstrip("\r\n")
