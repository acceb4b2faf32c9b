"""What a record says of itself is usable whatever its metadata holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestrata_memory.models import MemoryRecord

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def record(**metadata: object) -> MemoryRecord:
    return MemoryRecord(
        key="k",
        content="said",
        volk_id="ENG:ALPHA",
        session_id="s",
        created_at=NOW,
        updated_at=NOW,
        content_hash="",
        metadata=metadata,
    )


@pytest.mark.parametrize("value", [None, 7, "yesterday", "", [1], "2026-13-01"])
def test_what_is_no_time_is_the_time_of_creation(value: object) -> None:
    assert record(occurred_at=value).occurred_at == NOW


def test_a_time_without_an_offset_is_utc() -> None:
    assert record(occurred_at="2025-05-06T07:08:09").occurred_at == datetime(
        2025, 5, 6, 7, 8, 9, tzinfo=UTC
    )
    assert record(occurred_at="2025-05-06T07:08:09+02:00").occurred_at.utcoffset() == timedelta(
        hours=2
    )


@pytest.mark.parametrize("value", [None, True, "0.5", float("nan"), float("inf"), 10**400])
def test_what_is_no_finite_number_counts_as_none(value: object) -> None:
    assert record(relevance=value, importance=value).relevance is None
    assert record(relevance=value, importance=value).importance is None


def test_numbers_are_floats() -> None:
    assert record(relevance=1, importance=0.25).relevance == 1.0
    assert record(relevance=1, importance=0.25).importance == 0.25
