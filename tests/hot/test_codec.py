"""Records survive the way into fields and back, whatever they hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.hot import codec
from orchestrata_memory.models import AuditRecord, Delegation, MemoryClassification, MemoryRecord
from tests.hot.making import record

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
_TIMES = st.datetimes(
    min_value=datetime(1971, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_RECORDS = st.builds(
    MemoryRecord,
    key=st.just("k"),
    content=_TEXT,
    volk_id=_TEXT,
    session_id=_TEXT,
    created_at=_TIMES,
    updated_at=_TIMES,
    content_hash=_TEXT,
    summary=st.none() | _TEXT,
    tags=st.lists(_TEXT, max_size=3).map(tuple),
    metadata=st.dictionaries(_TEXT, _JSON, max_size=3),
    classification=st.sampled_from(MemoryClassification),
    task_id=st.none() | _TEXT,
    project_id=st.none() | _TEXT,
    portfolio_id=st.none() | _TEXT,
    token_count=st.integers(0, 10**9),
    version=st.integers(1, 10**9),
    shared_with=st.lists(_TEXT, max_size=3).map(tuple),
    position=st.integers(0, 10**9),
    sources=st.lists(_TEXT, max_size=3).map(tuple),
    source_versions=st.lists(st.integers(1, 99), max_size=3).map(tuple),
)


def _fields(flat: list[str]) -> dict[bytes, bytes]:
    return codec.mapping([item.encode() for item in flat])


@given(_RECORDS)
def test_records_come_back_as_they_were(made: MemoryRecord) -> None:
    assert codec.load_record("k", _fields(codec.record_fields(made))) == made


def test_every_field_of_the_design_is_there() -> None:
    made = record("k", summary="s", task_id="t", portfolio_id="p")
    assert set(codec.record_fields(made)[::2]) == {
        "content", "summary", "tags", "metadata", "classification", "volk_id", "session_id",
        "task_id", "created_at", "updated_at", "token_count", "project_id", "portfolio_id",
        "version", "shared_with", "content_hash", "replica",
        "position", "sources", "source_versions",
    }  # fmt: skip


@given(_TIMES, st.integers(-14 * 60, 14 * 60))
def test_times_are_utc_text_in_time_order(moment: datetime, minutes: int) -> None:
    elsewhere = moment.astimezone(timezone(timedelta(minutes=minutes)))
    text = codec.dump_time(elsewhere)
    assert text == codec.dump_time(moment)
    assert text.endswith("+00:00")
    assert len(text) == 32
    assert codec.load_time(text) == moment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content", None),
        ("content", b"\xff"),
        ("version", b"one"),
        ("tags", b"{}"),
        ("tags", b"[1]"),
        ("metadata", b"[]"),
        ("metadata", b"{"),
        ("classification", b"secret"),
        ("created_at", b"2024-01-01T00:00:00"),
        ("updated_at", b"yesterday"),
        ("source_versions", b'["1"]'),
    ],
)
def test_damage_names_the_field_and_not_its_value(name: str, value: bytes | None) -> None:
    fields = _fields(codec.record_fields(record("k", "CANARY")))
    fields.pop(name.encode())
    if value is not None:
        fields[name.encode()] = value
    with pytest.raises(codec.UnreadableRecordError, match=name) as caught:
        codec.load_record("k", fields)
    assert "CANARY" not in str(caught.value)


@given(
    st.builds(
        AuditRecord,
        audit_id=_TEXT,
        operation=_TEXT,
        volk_id=_TEXT,
        session_id=_TEXT,
        key=st.none() | _TEXT,
        rule=_TEXT,
        outcome=_TEXT,
        detail=_TEXT,
        at=_TIMES,
    )
)
def test_audit_records_come_back_as_they_were(made: AuditRecord) -> None:
    assert codec.load_audit(_fields(codec.audit_fields(made))) == made


@given(
    st.builds(
        Delegation,
        delegator=_TEXT,
        delegate=_TEXT,
        created_at=_TIMES,
        expires_at=st.none() | _TIMES,
        revoked=st.booleans(),
        version=st.integers(1, 10**9),
    )
)
def test_delegations_come_back_as_they_were(made: Delegation) -> None:
    assert codec.load_delegation(_fields(codec.delegation_fields(made))) == made
    assert codec.load_delegation_value(codec.delegation_value(made).encode()) == made
