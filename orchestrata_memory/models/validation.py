"""Validation of everything callers hand in: pure functions, one error type.

Each function returns the value to work with (a plain, normalised copy where the argument could be
changed later or spelled in several ways) or raises `MemoryValidationError` that names the field
and the rule, never the value: a message may be logged.

Two decisions that the rules leave open: an int of metadata must fit into 64 bits, because readers
of JSON in other languages silently lose more; and a tuple is not JSON, because it would come back
as a list.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.models.context import MemoryContext
from orchestrata_memory.models.entry import MemoryClassification
from orchestrata_memory.models.scope import MemoryScope

IDENTIFIER_BYTES = 512
QUERY_BYTES = 64 * 1024
MAX_LIMIT = 10_000
MIN_TOKENS = 16
METADATA_DEPTH = 32

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_SHOWN_PATH = 120
_SHOWN_NAME = 40


def check_identifier(value: object, field: str) -> str:
    """An id, key, tag or alias: 1 to 512 bytes of UTF-8 without control characters.

    Everything else is valid in it: blanks, quotes, colons, braces, any script.
    """
    text = _text(value, field)
    size = len(text.encode())
    if not 1 <= size <= IDENTIFIER_BYTES:
        raise MemoryValidationError(
            field, f"must be 1 to {IDENTIFIER_BYTES} bytes of UTF-8, not {size}"
        )
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise MemoryValidationError(field, "must not hold control characters")
    return text


def check_content(value: object, limit_bytes: int, *, field: str = "content") -> str:
    """The text of a memory: not blank, no NUL, at most `limit_bytes` of UTF-8."""
    text = _text(value, field)
    if not text.strip():
        raise MemoryValidationError(field, "must not be blank")
    if "\0" in text:
        raise MemoryValidationError(field, "must not hold NUL")
    size = len(text.encode())
    if size > limit_bytes:
        raise MemoryValidationError(
            field,
            f"has {size} bytes of UTF-8, the limit is {limit_bytes}: "
            "split it, or raise limits.content_bytes",
        )
    return text


def check_query(value: object, *, field: str = "query") -> str:
    """A search text: not blank, no NUL, at most 64 KiB of UTF-8."""
    text = _text(value, field)
    if not text.strip():
        raise MemoryValidationError(field, "must not be blank")
    if "\0" in text:
        raise MemoryValidationError(field, "must not hold NUL")
    if len(text.encode()) > QUERY_BYTES:
        raise MemoryValidationError(field, f"must be at most {QUERY_BYTES} bytes of UTF-8")
    return text


def check_tags(tags: object, limit: int, *, field: str = "tags") -> tuple[str, ...]:
    """Tags, distinct, in the order given; None gives none.

    A single string is refused: it would otherwise become a tag for each of its letters.
    """
    if tags is None:
        return ()
    if isinstance(tags, (str, bytes)) or not isinstance(tags, Sequence):
        raise MemoryValidationError(field, f"must be a list of strings, not {_kind(tags)}")
    checked = (check_identifier(tag, f"{field}[{index}]") for index, tag in enumerate(tags))
    distinct = tuple(dict.fromkeys(checked))
    if len(distinct) > limit:
        raise MemoryValidationError(field, f"has {len(distinct)} tags, the limit is {limit}")
    return distinct


def check_metadata(
    metadata: object, limit_bytes: int, *, field: str = "metadata"
) -> dict[str, Any]:
    """A deep copy of a JSON object that survives a round trip through JSON unchanged.

    ``occurred_at`` is normalised to UTC with microseconds. The size counted against `limit_bytes`
    is that of the compact JSON text in UTF-8.

    Raises:
        MemoryValidationError: Its `field` is the path of what is wrong.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise MemoryValidationError(field, f"must be a JSON object, not {_kind(metadata)}")
    copied = _JsonCopy(field, limit_bytes).copy(metadata, field)
    _check_well_known(copied, field)
    size = len(json.dumps(copied, ensure_ascii=False, separators=(",", ":")).encode())
    if size > limit_bytes:
        raise _too_large(field, limit_bytes)
    return copied


def check_scope(scope: object) -> MemoryScope:
    """A scope with valid ids and aware dates, in UTC; None is the scope without filters."""
    if scope is None:
        return MemoryScope()
    if not isinstance(scope, MemoryScope):
        raise MemoryValidationError("scope", f"must be a MemoryScope, not {_kind(scope)}")
    date_from = _optional_time(scope.date_from, "scope.date_from")
    date_to = _optional_time(scope.date_to, "scope.date_to")
    if date_from is not None and date_to is not None and date_from > date_to:
        raise MemoryValidationError("scope.date_from", "must not be after date_to")
    return MemoryScope(
        session_id=_optional_identifier(scope.session_id, "scope.session_id"),
        task_id=_optional_identifier(scope.task_id, "scope.task_id"),
        volk_id=_optional_identifier(scope.volk_id, "scope.volk_id"),
        project_id=_optional_identifier(scope.project_id, "scope.project_id"),
        portfolio_id=_optional_identifier(scope.portfolio_id, "scope.portfolio_id"),
        date_from=date_from,
        date_to=date_to,
    )


def check_context(context: object) -> MemoryContext:
    """A caller with valid ids; a blank focus is none."""
    if not isinstance(context, MemoryContext):
        raise MemoryValidationError("context", f"must be a MemoryContext, not {_kind(context)}")
    focus = context.focus
    if focus is not None:
        text = _text(focus, "context.focus")
        focus = check_query(text, field="context.focus") if text.strip() else None
    return replace(
        context,
        volk_id=check_identifier(context.volk_id, "context.volk_id"),
        session_id=check_identifier(context.session_id, "context.session_id"),
        task_id=_optional_identifier(context.task_id, "context.task_id"),
        project_id=_optional_identifier(context.project_id, "context.project_id"),
        portfolio_id=_optional_identifier(context.portfolio_id, "context.portfolio_id"),
        provider=_optional_identifier(context.provider, "context.provider"),
        model=_optional_identifier(context.model, "context.model"),
        focus=focus,
    )


def check_classification(value: object, *, field: str = "classification") -> MemoryClassification:
    """A classification, also by its name such as ``"shared"``."""
    if isinstance(value, str):
        try:
            return MemoryClassification(value)
        except ValueError:
            pass
    names = ", ".join(MemoryClassification)
    raise MemoryValidationError(field, f"must be one of {names}")


def check_limit(value: object, *, field: str = "limit") -> int:
    """How many results at most: 1 to 10,000.

    Traces: REQ-010-019
    """
    number = _integer(value, field)
    if not 1 <= number <= MAX_LIMIT:
        raise MemoryValidationError(field, f"must be 1 to {MAX_LIMIT}")
    return number


def check_max_tokens(value: object, *, field: str = "max_tokens") -> int:
    """A token budget: at least 16."""
    number = _integer(value, field)
    if number < MIN_TOKENS:
        raise MemoryValidationError(field, f"must be at least {MIN_TOKENS}")
    return number


def check_min_similarity(value: object, *, field: str = "min_similarity") -> float:
    """A similarity as (1 + cosine) / 2: 0 to 1."""
    return _unit_interval(value, field)


def check_time(value: object, field: str) -> datetime:
    """An aware datetime, in UTC."""
    if not isinstance(value, datetime):
        raise MemoryValidationError(field, f"must be a datetime, not {_kind(value)}")
    return _to_utc(value, field)


# --- helpers -----------------------------------------------------------------------------


def _kind(value: object) -> str:
    return type(value).__name__


def _text(value: object, field: str) -> str:
    """A plain str without lone surrogates (which no UTF-8 can carry)."""
    if not isinstance(value, str):
        raise MemoryValidationError(field, f"must be a string, not {_kind(value)}")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MemoryValidationError(field, "must not hold lone surrogates") from None
    return text


def _optional_identifier(value: object, field: str) -> str | None:
    return None if value is None else check_identifier(value, field)


def _optional_time(value: object, field: str) -> datetime | None:
    return None if value is None else check_time(value, field)


def _integer(value: object, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise MemoryValidationError(field, f"must be an integer, not {_kind(value)}")
    return int(value)


def _unit_interval(value: object, field: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise MemoryValidationError(field, f"must be a number from 0 to 1, not {_kind(value)}")
    if not 0 <= value <= 1:  # also refuses NaN
        raise MemoryValidationError(field, "must be a number from 0 to 1")
    return float(value)


def _to_utc(value: datetime, field: str) -> datetime:
    if value.utcoffset() is None:
        raise MemoryValidationError(field, "must have a time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise MemoryValidationError(field, "lies outside the years 1 to 9999 in UTC") from None


def _too_large(field: str, limit_bytes: int) -> MemoryValidationError:
    return MemoryValidationError(field, f"is larger than {limit_bytes} bytes as JSON")


def _check_well_known(metadata: dict[str, Any], field: str) -> None:
    for name in ("relevance", "importance"):
        if name in metadata:
            _unit_interval(metadata[name], f"{field}.{name}")
    if "occurred_at" in metadata:
        metadata["occurred_at"] = _iso_time(metadata["occurred_at"], f"{field}.occurred_at")
    if "speaker" in metadata:
        check_identifier(metadata["speaker"], f"{field}.speaker")


def _iso_time(value: object, field: str) -> str:
    rule = "must be an ISO 8601 time with a time zone, as a string"
    if not isinstance(value, str):
        raise MemoryValidationError(field, f"{rule}, not {_kind(value)}")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise MemoryValidationError(field, rule) from None
    return _to_utc(moment, field).isoformat(timespec="microseconds")


class _JsonCopy:
    """Copies JSON values, refusing what JSON cannot carry.

    The size is counted on the way, so that a small object that holds itself many times over
    (without a cycle) is refused before it fills the memory.
    """

    def __init__(self, field: str, limit_bytes: int) -> None:
        self._field = field
        self._limit = limit_bytes
        self._size = 0
        self._open: set[int] = set()

    def copy(self, value: dict[Any, Any], path: str) -> dict[str, Any]:
        self._enter(value, path)
        copied: dict[str, Any] = {}
        for index, (name, item) in enumerate(value.items()):
            if not isinstance(name, str):
                raise MemoryValidationError(path, f"has a key that is {_kind(name)}, not a string")
            plain = _text(name, f"a key in {path}")
            self._count(len(plain) + 3 + (index > 0))
            copied[plain] = self._value(item, _below(path, plain))
        self._open.discard(id(value))
        return copied

    def _array(self, value: list[Any], path: str) -> list[Any]:
        self._enter(value, path)
        copied = []
        for index, item in enumerate(value):
            self._count(int(index > 0))
            copied.append(self._value(item, f"{path}[{index}]"))
        self._open.discard(id(value))
        return copied

    def _enter(self, value: object, path: str) -> None:
        if id(value) in self._open:
            raise MemoryValidationError(path, "holds itself: a cycle is not JSON")
        if len(self._open) >= METADATA_DEPTH:
            raise MemoryValidationError(path, f"is nested deeper than {METADATA_DEPTH} levels")
        self._open.add(id(value))
        self._count(2)

    def _value(self, value: object, path: str) -> object:
        if isinstance(value, str):
            text = _text(value, path)
            self._count(len(text) + 2)
            return text
        if isinstance(value, dict):
            return self.copy(value, path)
        if isinstance(value, list):
            return self._array(value, path)
        self._count(1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return _json_int(value, path)
        if isinstance(value, float):
            return _json_float(value, path)
        raise MemoryValidationError(path, f"is not JSON: {_kind(value)}")

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:  # a lower bound of the size; the exact check comes last
            raise _too_large(self._field, self._limit)


def _json_int(value: int, path: str) -> int:
    plain = int(value)
    if not _INT_MIN <= plain <= _INT_MAX:
        raise MemoryValidationError(path, "must fit into 64 bits")
    return plain


def _json_float(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise MemoryValidationError(path, "is not JSON: NaN or infinite")
    return float(value)


def _below(path: str, name: str) -> str:
    """The path of a member, printable and short whatever the name is."""
    shown = name if name.isprintable() and name else repr(name)
    if len(shown) > _SHOWN_NAME:
        shown = shown[:_SHOWN_NAME] + "…"
    joined = f"{path}.{shown}"
    return joined if len(joined) <= _SHOWN_PATH else "…" + joined[-_SHOWN_PATH:]
