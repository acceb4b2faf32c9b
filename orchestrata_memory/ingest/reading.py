"""Finds out what a file is and reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

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
    if path.suffix.lower() == ".json" or first[:1] in {"{", "["}:
        return _json_format(path, first)
    if any(text.startswith(("# ", "## ", "```")) for text in head):
        return Format.MARKDOWN
    return Format.TEXT


def _json_format(path: Path, first_line: str) -> Format:
    try:
        value = json.loads(first_line)
    except (ValueError, RecursionError):
        value = _load(path)  # it goes on over several lines
    else:
        if isinstance(value, dict) and not is_locomo(value):
            return Format.CHAT_LINES
    return Format.LOCOMO if is_locomo(value) else Format.CHAT


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
    except RecursionError as error:
        raise fault(path, None, "is nested too deeply") from error
