"""LoCoMo's JSON: conversations of many dated sessions between two people.

A conversation is a project, a session of it a session, a turn a memory: the text as spoken, and
the caption of a picture where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.ingest.base import IngestItem, fault
from orchestrata_memory.ingest.splitting import split_text
from orchestrata_memory.models.validation import check_content, check_identifier

_SESSION: Final = re.compile(r"session_(\d+)$")
_TIME: Final = "%I:%M %p on %d %B, %Y"


def is_locomo(value: object) -> bool:
    """Whether a JSON value looks like LoCoMo's."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, Mapping):
        return False
    talk = first.get("conversation")
    return isinstance(talk, Mapping) and any(_SESSION.match(name) for name in talk)


def read_locomo(path: Path, value: object, limit_bytes: int) -> Iterator[IngestItem]:
    """Every turn, in the order it was spoken.

    Raises:
        MemoryValidationError: Names the conversation and turn of what is wrong.
    """
    for number, sample in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(sample, Mapping) or not isinstance(sample.get("conversation"), Mapping):
            raise fault(path, None, f"conversation {number} has no sessions")
        project = str(sample.get("sample_id") or f"conversation-{number}")
        yield from _conversation(path, project, sample["conversation"], limit_bytes)


def _conversation(
    path: Path, project: str, talk: Mapping[str, Any], limit_bytes: int
) -> Iterator[IngestItem]:
    numbers = sorted(int(match[1]) for name in talk if (match := _SESSION.match(name)))
    for number in numbers:
        session = f"{project}:session_{number}"
        try:
            when = _time(talk.get(f"session_{number}_date_time"))
            turns = _list(talk[f"session_{number}"])
        except MemoryValidationError as error:
            raise fault(path, None, f"{session}: {error}") from error
        for position, turn in enumerate(turns, start=1):
            try:
                yield from _turn(turn, project, session, when, limit_bytes)
            except MemoryValidationError as error:
                raise fault(path, None, f"{session}, turn {position}: {error}") from error


def _turn(
    turn: object, project: str, session: str, when: datetime | None, limit_bytes: int
) -> Iterator[IngestItem]:
    if not isinstance(turn, Mapping):
        raise MemoryValidationError("turn", "must be an object")
    speaker = check_identifier(turn.get("speaker"), "speaker")
    key = check_identifier(f"{project}:{turn.get('dia_id')}", "dia_id")
    text = turn.get("text")
    if caption := turn.get("blip_caption"):
        text = f"{text or ''} [image: {caption}]".strip()
    if text == "":
        return
    content = check_content(text, max(limit_bytes, len(str(text).encode(errors="replace"))))
    for part, piece in enumerate(split_text(content, limit_bytes), start=1):
        yield IngestItem(
            content=piece,
            key=key if part == 1 else f"{key}:part-{part}",
            session_id=session,
            speaker=speaker,
            occurred_at=when,
            project_id=project,
        )


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise MemoryValidationError("turns", "must be a list")
    return value


def _time(value: object) -> datetime | None:
    """``1:56 pm on 8 May, 2023``, taken as UTC, for the data names no zone."""
    if value is None:
        return None
    try:
        return datetime.strptime(str(value).strip(), _TIME).replace(tzinfo=UTC)
    except ValueError:
        raise MemoryValidationError("date_time", "must be like 1:56 pm on 8 May, 2023") from None
