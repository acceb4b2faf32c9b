"""Records as Redis fields, and back.

An entry's hash, its outbox record and a replica share one list of fields, so a lost hash is
restored from an outbox record as it stands. Rules:

- None is an absent field; an empty string is an empty field.
- Lists and objects are JSON without escapes of non-ASCII; times ISO 8601, UTC, microseconds.
- ``replica`` is ``1`` in a replica and ``0`` otherwise.
- ``position``, ``sources`` and ``source_versions`` are added to the fields fixed by the design.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from orchestrata_memory.models import (
    AuditRecord,
    Delegation,
    MemoryClassification,
    MemoryRecord,
)

Fields = Mapping[bytes, bytes]


class UnreadableRecordError(ValueError):
    """Fields that do not make a record; the message names the field, never its value."""


def dump_json(value: object) -> str:
    """Compact JSON, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dump_time(value: datetime) -> str:
    """ISO 8601, UTC, microseconds: text order is time order."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")


def load_time(text: str) -> datetime:
    """An aware time in UTC.

    Raises:
        ValueError: Not ISO 8601, or naive.
    """
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError("a naive time")
    return value.astimezone(UTC)


def record_fields(record: MemoryRecord, *, replica: bool = False) -> list[str]:
    """Field, value, field, value, … of an entry at home, or of a replica; `position` and all.

    Traces: REQ-010-004, REQ-010-009
    """
    optional = {
        "summary": record.summary,
        "task_id": record.task_id,
        "project_id": record.project_id,
        "portfolio_id": record.portfolio_id,
    }
    fields: list[str] = [
        "content", record.content,
        "tags", dump_json(record.tags),
        "metadata", dump_json(record.metadata),
        "classification", record.classification.value,
        "volk_id", record.volk_id,
        "session_id", record.session_id,
        "created_at", dump_time(record.created_at),
        "updated_at", dump_time(record.updated_at),
        "token_count", str(record.token_count),
        "version", str(record.version),
        "shared_with", dump_json(record.shared_with),
        "content_hash", record.content_hash,
        "position", str(record.position),
        "sources", dump_json(record.sources),
        "source_versions", dump_json(record.source_versions),
        "replica", "1" if replica else "0",
    ]  # fmt: skip
    for name, value in optional.items():
        if value is not None:
            fields += (name, value)
    return fields


class _Reader:
    """Reads typed fields, naming the one at fault."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def optional(self, name: str) -> str | None:
        raw = self._fields.get(name.encode())
        try:
            return None if raw is None else raw.decode()
        except UnicodeDecodeError as error:
            raise UnreadableRecordError(f"the field {name} is not UTF-8") from error

    def text(self, name: str) -> str:
        value = self.optional(name)
        if value is None:
            raise UnreadableRecordError(f"the field {name} is missing")
        return value

    def number(self, name: str) -> int:
        try:
            return int(self.text(name))
        except ValueError as error:
            raise UnreadableRecordError(f"the field {name} is not a whole number") from error

    def time(self, name: str) -> datetime:
        try:
            return load_time(self.text(name))
        except ValueError as error:
            raise UnreadableRecordError(f"the field {name} is not an aware time") from error

    def strings(self, name: str) -> tuple[str, ...]:
        value = self._json(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UnreadableRecordError(f"the field {name} is not a list of strings")
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...]:
        value = self._json(name)
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise UnreadableRecordError(f"the field {name} is not a list of whole numbers")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._json(name)
        if not isinstance(value, dict):
            raise UnreadableRecordError(f"the field {name} is not a JSON object")
        return value

    def _json(self, name: str) -> object:
        try:
            value: object = json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise UnreadableRecordError(f"the field {name} is not JSON") from error
        return value


def load_record(key: str, fields: Fields) -> MemoryRecord:
    """The record that `record_fields` made the fields from.

    Raises:
        UnreadableRecordError: A field is missing or of the wrong form.
    """
    read = _Reader(fields)
    try:
        classification = MemoryClassification(read.text("classification"))
    except ValueError as error:
        raise UnreadableRecordError("the field classification has an unknown value") from error
    return MemoryRecord(
        key=key,
        content=read.text("content"),
        summary=read.optional("summary"),
        tags=read.strings("tags"),
        metadata=read.mapping("metadata"),
        classification=classification,
        volk_id=read.text("volk_id"),
        session_id=read.text("session_id"),
        task_id=read.optional("task_id"),
        project_id=read.optional("project_id"),
        portfolio_id=read.optional("portfolio_id"),
        created_at=read.time("created_at"),
        updated_at=read.time("updated_at"),
        token_count=read.number("token_count"),
        version=read.number("version"),
        shared_with=read.strings("shared_with"),
        content_hash=read.text("content_hash"),
        position=read.number("position"),
        sources=read.strings("sources"),
        source_versions=read.numbers("source_versions"),
    )


def audit_fields(record: AuditRecord) -> list[str]:
    """Field, value, … of an audit record; without a key the field ``key`` is absent."""
    fields = [
        "audit_id", record.audit_id,
        "operation", record.operation,
        "volk_id", record.volk_id,
        "session_id", record.session_id,
        "rule", record.rule,
        "outcome", record.outcome,
        "detail", record.detail,
        "at", dump_time(record.at),
    ]  # fmt: skip
    if record.key is not None:
        fields += ("key", record.key)
    return fields


def load_audit(fields: Fields) -> AuditRecord:
    """The record that `audit_fields` made the fields from.

    Raises:
        UnreadableRecordError: A field is missing or of the wrong form.
    """
    read = _Reader(fields)
    return AuditRecord(
        audit_id=read.text("audit_id"),
        operation=read.text("operation"),
        volk_id=read.text("volk_id"),
        session_id=read.text("session_id"),
        key=read.optional("key"),
        rule=read.text("rule"),
        outcome=read.text("outcome"),
        detail=read.text("detail"),
        at=read.time("at"),
    )


def salvage_audit(stream_id: str, fields: Fields) -> AuditRecord:
    """The audit record, or what can still be read of a damaged one, which its detail says."""
    try:
        return load_audit(fields)
    except UnreadableRecordError as error:
        texts = {name: value.decode(errors="replace") for name, value in fields.items()}
        milliseconds = int(stream_id.split("-", 1)[0])
        return AuditRecord(
            audit_id=texts.get(b"audit_id", f"stream-{stream_id}"),
            operation=texts.get(b"operation", ""),
            volk_id=texts.get(b"volk_id", ""),
            session_id=texts.get(b"session_id", ""),
            key=texts.get(b"key"),
            rule=texts.get(b"rule", ""),
            outcome=texts.get(b"outcome", ""),
            detail=f"damaged: {error}",
            at=datetime.fromtimestamp(milliseconds / 1000, UTC),
        )


def delegation_fields(delegation: Delegation) -> list[str]:
    """Field, value, … of a delegation; without an expiry the field ``expires_at`` is absent."""
    fields = [
        "delegator", delegation.delegator,
        "delegate", delegation.delegate,
        "created_at", dump_time(delegation.created_at),
        "revoked", "1" if delegation.revoked else "0",
        "version", str(delegation.version),
    ]  # fmt: skip
    if delegation.expires_at is not None:
        fields += ("expires_at", dump_time(delegation.expires_at))
    return fields


def load_delegation(fields: Fields) -> Delegation:
    """The delegation that `delegation_fields` made the fields from.

    Raises:
        UnreadableRecordError: A field is missing or of the wrong form.
    """
    read = _Reader(fields)
    return Delegation(
        delegator=read.text("delegator"),
        delegate=read.text("delegate"),
        created_at=read.time("created_at"),
        expires_at=None if b"expires_at" not in fields else read.time("expires_at"),
        revoked=read.text("revoked") == "1",
        version=read.number("version"),
    )


def delegation_value(delegation: Delegation) -> str:
    """A delegation as one field's value: its version, a blank, its fields as a JSON list."""
    return f"{delegation.version} {dump_json(delegation_fields(delegation))}"


def load_delegation_value(value: bytes) -> Delegation:
    """The delegation that `delegation_value` wrote."""
    flat: list[str] = json.loads(value.split(b" ", 1)[1])
    return load_delegation(mapping([item.encode() for item in flat]))


def mapping(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    """Redis's flat list of fields and values as a mapping."""
    return dict(_pairs(flat))


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    items = iter(flat)
    return zip(items, items, strict=True)
