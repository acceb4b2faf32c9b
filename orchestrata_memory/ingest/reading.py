"""Finds out what a file is and reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.ingest.base import Format, IngestItem, fault, read_lines
from orchestrata_memory.ingest.chat import read_chat, read_chat_lines
from orchestrata_memory.ingest.documents import read_markdown, read_text
from orchestrata_memory.ingest.locomo import is_locomo, read_locomo

PART_BYTES: Final = 2_000
"""How long a part of a document may be: a few paragraphs, which one vector still describes."""

LEAST_PART_BYTES: Final = 64

_BY_SUFFIX: Final = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
    ".rst": Format.TEXT,
    ".jsonl": Format.CHAT_LINES,
    ".ndjson": Format.CHAT_LINES,
}
_LOOKED_AT: Final = 50


def read_items(
    path: Path, *, limit_bytes: int, part_bytes: int = PART_BYTES, form: Format | None = None
) -> Iterator[IngestItem]:
    """The memories in a file, in its order; lines are read as they are needed.

    Args:
        path: The file, UTF-8.
        limit_bytes: The content limit; a longer message is cut at the end of a sentence.
        part_bytes: How long a part of a document may be, at least 64.
        form: Its format; None finds out.

    Raises:
        MemoryValidationError: Names the file and line of what is wrong, or says that nothing is
            in it. What was yielded before is valid.
    """
    part_bytes = min(max(part_bytes, LEAST_PART_BYTES), limit_bytes)
    empty = True
    for item in _items(path, form or detect_format(path), limit_bytes, part_bytes):
        empty = False
        yield item
    if empty:
        raise fault(path, None, "holds no text to remember")


def detect_format(path: Path) -> Format:
    """The format of a file, by its name, else by how it begins.

    Raises:
        MemoryValidationError: It cannot be read, or is no text.
    """
    known = _BY_SUFFIX.get(path.suffix.lower())
    if known is not None:
        return known
    head = [line.text for line in islice(read_lines(path), _LOOKED_AT)]
    first = next((text.strip() for text in head if text.strip()), "")
    if path.suffix.lower() == ".json":
        value, ends_with_line = _first_value(path, first)
        return _format_of(value, ends_with_line=ends_with_line)
    if first[:1] in {"{", "["}:
        with suppress(MemoryValidationError):  # a log, say, begins so too
            value, ends_with_line = _first_value(path, first)
            if _holds_objects(value):
                return _format_of(value, ends_with_line=ends_with_line)
    if any(text.startswith(("# ", "## ", "```")) for text in head):
        return Format.MARKDOWN
    return Format.TEXT


def _first_value(path: Path, first_line: str) -> tuple[object, bool]:
    """The JSON value that a file begins with, and whether it ends with the first line."""
    try:
        return json.loads(first_line), True
    except (ValueError, RecursionError):
        return _load(path), False


def _format_of(value: object, *, ends_with_line: bool) -> Format:
    if is_locomo(value):
        return Format.LOCOMO
    return Format.CHAT_LINES if ends_with_line and isinstance(value, dict) else Format.CHAT


def _holds_objects(value: object) -> bool:
    return isinstance(value[0] if isinstance(value, list) and value else value, dict)


def _items(path: Path, form: Format, limit_bytes: int, part_bytes: int) -> Iterator[IngestItem]:
    match form:
        case Format.TEXT:
            return read_text(path, part_bytes)
        case Format.MARKDOWN:
            return read_markdown(path, part_bytes)
        case Format.CHAT_LINES:
            return read_chat_lines(path, limit_bytes)
        case Format.CHAT:
            return read_chat(path, _load(path), limit_bytes)
        case Format.LOCOMO:
            return read_locomo(path, _load(path), limit_bytes)


def _load(path: Path) -> object:
    text = "\n".join(line.text for line in read_lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise fault(path, error.lineno, f"is not JSON: {error.msg}") from error
    except ValueError as error:
        raise fault(path, None, "holds a number of too many digits") from error
    except RecursionError as error:
        raise fault(path, None, "is nested too deeply") from error
