"""Chat transcripts: JSON lines, a JSON list of messages, or objects with ``messages``.

Tolerant of how fields are called, strict about what is in them: a message whose time cannot be
understood is an error that names its line, not a message without a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.ingest.base import IngestItem, fault, read_lines
from orchestrata_memory.ingest.keys import PartKeys
from orchestrata_memory.ingest.splitting import split_text
from orchestrata_memory.models.validation import check_content, check_identifier, check_tags

_SPEAKER: Final = ("speaker", "name", "author", "from", "sender", "user", "role")
_TEXT: Final = ("content", "text", "message", "body")
_TIME: Final = ("occurred_at", "timestamp", "created_at", "time", "date", "created", "ts")
_SESSION: Final = (
    "session_id",
    "session",
    "conversation_id",
    "conversation",
    "thread_id",
    "thread",
)
_PROJECT: Final = ("project_id", "project")
_TASK: Final = ("task_id", "task")
_KEY: Final = ("id", "message_id", "key")
_MESSAGES: Final = "messages"
_SECONDS_FROM: Final = 1e8
"""Fewer are not taken for a time: no chat is from before 1973, and a date may be all digits."""

_MILLISECONDS_FROM: Final = 1e11
_TAGS: Final = 64


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a message stands; `line` is that of its object."""

    path: Path
    line: int | None


def read_chat_lines(path: Path, limit_bytes: int) -> Iterator[IngestItem]:
    """A transcript with one JSON object a line: a message, or a conversation's ``messages``."""
    keys = PartKeys(path.name)
    for line in read_lines(path):
        if not line.text.strip():
            continue
        try:
            value = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            raise fault(path, line.number, f"is not JSON: {_reason(error)}") from error
        yield from _items(value, _Place(path, line.number), keys, limit_bytes, f"{line.number}")


def read_chat(path: Path, value: object, limit_bytes: int) -> Iterator[IngestItem]:
    """A transcript that is one JSON value: messages, or conversations of messages."""
    keys = PartKeys(path.name)
    values = value if isinstance(value, list) else [value]
    for number, item in enumerate(values, start=1):
        yield from _items(item, _Place(path, None), keys, limit_bytes, f"{number}")


def _items(
    value: object, place: _Place, keys: PartKeys, limit_bytes: int, number: str
) -> Iterator[IngestItem]:
    if not isinstance(value, Mapping):
        raise fault(place.path, place.line, f"entry {number} is not an object")
    messages = value.get(_MESSAGES)
    if not isinstance(messages, list):
        yield from _message(value, place, keys, limit_bytes)
        return
    around = {name: value[name] for name in (*_SESSION, *_PROJECT, *_TASK) if name in value}
    around.setdefault("session", f"{place.path.stem}:{value.get('id', number)}")
    for message in messages:
        if not isinstance(message, Mapping):
            raise fault(place.path, place.line, f"a message of entry {number} is not an object")
        yield from _message({**around, **message}, place, keys, limit_bytes)


def _message(
    message: Mapping[str, Any], place: _Place, keys: PartKeys, limit_bytes: int
) -> Iterator[IngestItem]:
    try:
        text = _text(_first(message, _TEXT))
        if not text.strip():
            return  # a call of a tool, a picture: nothing was said
        check_content(text, len(text.encode(errors="replace")) + 1)
        speaker = _id(message, _SPEAKER)
        when = _time(_first(message, _TIME))
        session = _id(message, _SESSION)
        tags = check_tags(message.get("tags"), _TAGS)
        own = _id(message, _KEY)
        common = {"project_id": _id(message, _PROJECT), "task_id": _id(message, _TASK)}
        for part in split_text(text, limit_bytes):
            yield IngestItem(
                content=part,
                key=keys.of(
                    own, session, speaker, None if when is None else when.isoformat(), part
                ),
                session_id=session,
                speaker=speaker,
                occurred_at=when,
                tags=tags,
                **common,
            )
    except MemoryValidationError as error:
        raise fault(place.path, place.line, str(error)) from error


def _first(message: Mapping[str, Any], names: tuple[str, ...]) -> object:
    return next((message[name] for name in names if message.get(name) is not None), None)


def _text(value: object) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in value)
        return "\n".join(part for part in parts if isinstance(part, str))
    raise MemoryValidationError("content", f"must be text, not {type(value).__name__}")


def _id(message: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    value = _first(message, names)
    if isinstance(value, Mapping):  # such as {"author": {"name": …, "role": …}}
        value = _first(value, ("name", "id", "role"))
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return check_identifier(value, names[0])


def _time(value: object) -> datetime | None:
    """Seconds or milliseconds since 1970, or ISO 8601 (without a zone: UTC)."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return _moment(str(value).strip())
    except (ValueError, OverflowError, OSError):
        pass
    raise MemoryValidationError("timestamp", "must be ISO 8601, or seconds since 1970")


def _moment(text: str) -> datetime:
    seconds = _number(text)
    if seconds is None or abs(seconds) < _SECONDS_FROM:  # such as 20240501
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    if abs(seconds) >= _MILLISECONDS_FROM:
        seconds /= 1000
    return datetime.fromtimestamp(seconds, UTC)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
