"""Plain text and Markdown: a paragraph is a memory, a long one several.

In Markdown each part begins with the path of its headings, so that it can be found by them and
read without what stood before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrata_memory.ingest.base import IngestItem, Line, read_lines
from orchestrata_memory.ingest.keys import PartKeys
from orchestrata_memory.ingest.splitting import split_text

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_LONGEST_PARAGRAPH: Final = 1 << 20
_PATH_SHARE: Final = 4
_SEPARATOR: Final = " > "


def read_text(path: Path, part_bytes: int) -> Iterator[IngestItem]:
    """Paragraphs of a plain text file."""
    keys = PartKeys(path.name)
    for paragraph in _paragraphs(read_lines(path)):
        for part in split_text(paragraph, part_bytes):
            yield IngestItem(content=part, key=keys.of(part))


def read_markdown(path: Path, part_bytes: int) -> Iterator[IngestItem]:
    """Paragraphs, lists, tables and code blocks of a Markdown file, below their headings."""
    keys = PartKeys(path.name)
    for headings, block in _Blocks().of(read_lines(path)):
        prefix = _prefix(headings, part_bytes // _PATH_SHARE)
        room = part_bytes - len(prefix.encode())
        for part in split_text(block, room):
            yield IngestItem(content=prefix + part, key=keys.of(prefix, part))


def _prefix(headings: tuple[str, ...], limit_bytes: int) -> str:
    """The path of headings, without the outermost ones if it is too long."""
    for first in range(len(headings)):
        prefix = _SEPARATOR.join(headings[first:]) + "\n\n"
        if len(prefix.encode()) <= limit_bytes:
            return prefix
    return ""


def _paragraphs(lines: Iterable[Line]) -> Iterator[str]:
    """Runs of lines that are not blank; an endless one is ended."""
    block = _Block()
    for line in lines:
        if not line.text.strip() or block.full:
            yield from block.end()
        block.add(line.text)
    yield from block.end()


@dataclass
class _Block:
    """Lines that belong together so far."""

    lines: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def full(self) -> bool:
        return self.size >= _LONGEST_PARAGRAPH

    def add(self, line: str) -> None:
        self.lines.append(line)
        self.size += len(line) + 1

    def end(self) -> Iterator[str]:
        """The lines as one text, unless they are blank; begins anew."""
        text = "\n".join(self.lines).strip("\n")
        self.lines, self.size = [], 0
        if text.strip():
            yield text


class _Blocks:
    """Follows a Markdown file: the headings above, and whether a code block is open."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._fence: str | None = None
        self._block = _Block()

    def of(self, lines: Iterable[Line]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Each block with its path of headings."""
        for line in lines:
            yield from self._take(line.text)
        yield from self._end()

    def _take(self, text: str) -> Iterator[tuple[tuple[str, ...], str]]:
        if self._block.full:
            yield from self._end()
        if self._fence is not None:
            self._block.add(text)
            if text.strip().startswith(self._fence) and not text.strip().strip(self._fence[0]):
                self._fence = None
            return
        if fence := _FENCE.match(text):
            self._fence = fence[1]
            self._block.add(text)
        elif heading := _HEADING.match(text):
            yield from self._end()
            self._enter(len(heading[1]), heading[2] or "")
        elif (underline := _UNDERLINE.match(text)) and len(self._block.lines) == 1:
            title = self._block.lines[0]
            self._block = _Block()
            self._enter(1 if underline[1][0] == "=" else 2, title)
        elif not text.strip():
            yield from self._end()
        else:
            self._block.add(text)

    def _enter(self, level: int, title: str) -> None:
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        if title.strip():
            self._headings.append((level, title.strip()))

    def _end(self) -> Iterator[tuple[tuple[str, ...], str]]:
        for text in self._block.end():
            yield tuple(title for _, title in self._headings), text
