"""What callers may hand in, and what is refused with the field at fault."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.models import MemoryClassification, MemoryContext, MemoryScope
from orchestrata_memory.models.validation import (
    check_classification,
    check_content,
    check_context,
    check_identifier,
    check_limit,
    check_max_tokens,
    check_metadata,
    check_min_similarity,
    check_query,
    check_scope,
    check_tags,
    check_time,
)

LIMIT = 16 * 1024
OFFSET = timezone(timedelta(hours=5, minutes=30))

characters = st.characters(exclude_categories=("Cs", "Cc"))
identifiers = st.text(characters, min_size=1, max_size=128)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
WELL_KNOWN = {"relevance", "importance", "occurred_at", "speaker"}


def refused(call, *args, **kwargs) -> MemoryValidationError:
    with pytest.raises(MemoryValidationError) as caught:
        call(*args, **kwargs)
    str(caught.value).encode()  # a message must be fit for a log whatever it is about
    return caught.value


@given(identifiers)
def test_identifiers_come_back_unchanged(value):
    assert check_identifier(value, "key") == value


@pytest.mark.parametrize("value", ["a-b:c'd\"e{f}g h", "键", "👩‍👩‍👧", " ", "../..", "é" * 256])
def test_identifiers_of_any_script_and_punctuation(value):
    assert check_identifier(value, "key") == value


@pytest.mark.parametrize(
    "value", ["", "a" * 513, "é" * 257, "a\nb", "\0", "a\x7f", "\x85", "\ud800", None, 5, b"key"]
)
def test_identifiers_refused(value):
    assert refused(check_identifier, value, "key").field == "key"


@given(st.text(st.characters(categories=("Cc", "Cs")), min_size=1, max_size=3), texts)
def test_control_characters_and_surrogates_are_refused_anywhere(bad, text):
    refused(check_identifier, text[:10] + bad, "key")


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")))
def test_content_comes_back_unchanged_or_is_blank(value):
    if value.strip():
        assert check_content(value, 10_000) == value
    else:
        refused(check_content, value, 10_000)


def test_content_limit_counts_bytes_not_characters():
    assert check_content("é" * 5, 10) == "é" * 5
    assert "limit is 10" in str(refused(check_content, "é" * 6, 10))


@pytest.mark.parametrize("value", ["", " \n\t", "a\0b", "a\udfff", None, b"text", 3])
def test_content_refused(value):
    assert refused(check_content, value, LIMIT).field == "content"


def test_a_refusal_never_quotes_the_value():
    error = refused(check_content, "secret canary\0", LIMIT)
    assert "canary" not in str(error)
    error = refused(check_metadata, {"note": {"x": ["fine", b"canary"]}}, LIMIT)
    assert "canary" not in str(error)
    assert error.field == "metadata.note.x[1]"


@given(st.lists(identifiers, max_size=8))
def test_tags_keep_their_order_and_lose_duplicates(tags):
    checked = check_tags(tags + tags[::-1], 64)
    assert list(checked) == list(dict.fromkeys(tags))


@pytest.mark.parametrize(
    ("tags", "field"),
    [("abc", "tags"), ({"a"}, "tags"), (["a", ""], "tags[1]"), ([1], "tags[0]"), (5, "tags")],
)
def test_tags_refused(tags, field):
    assert refused(check_tags, tags, 64).field == field


def test_tags_limit_counts_distinct_ones():
    assert check_tags(["a", "b", "a"], 2) == ("a", "b")
    refused(check_tags, ["a", "b", "c"], 2)
    assert check_tags(None, 2) == ()


@given(st.dictionaries(texts.filter(lambda name: name not in WELL_KNOWN), json_values, max_size=5))
def test_metadata_survives_a_round_trip_through_json(metadata):
    checked = check_metadata(metadata, 1_000_000)
    assert checked == metadata
    assert json.loads(json.dumps(checked)) == metadata


@given(st.dictionaries(texts.filter(lambda name: name not in WELL_KNOWN), json_values, max_size=5))
def test_metadata_limit_is_the_size_of_the_compact_json(metadata):
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    assert check_metadata(metadata, size) == metadata
    if size > 2:
        refused(check_metadata, metadata, size - 1)


def test_metadata_is_a_deep_copy():
    inner = ["a"]
    checked = check_metadata({"x": {"y": inner}}, LIMIT)
    inner.append("b")
    assert checked == {"x": {"y": ["a"]}}


def test_subclasses_become_plain_json_types():
    class Colour(StrEnum):
        RED = "red"

    checked = check_metadata({Colour.RED: [Colour.RED]}, LIMIT)
    assert [type(name) for name in checked] == [str]
    assert type(checked["red"][0]) is str


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"a": float("nan")}, "metadata.a"),
        ({"a": [1, float("inf")]}, "metadata.a[1]"),
        ({"a": {"b": b"x"}}, "metadata.a.b"),
        ({"a": {1, 2}}, "metadata.a"),
        ({"a": (1, 2)}, "metadata.a"),
        ({"a": datetime.now(UTC)}, "metadata.a"),
        ({"a": {2: "x"}}, "metadata.a"),
        ({"a": "\ud800"}, "metadata.a"),
        ({"a": {"\udc00": 1}}, "a key in metadata.a"),
        ({"a": 2**63}, "metadata.a"),
        ({"a": object()}, "metadata.a"),
        ([], "metadata"),
        ("{}", "metadata"),
    ],
)
def test_metadata_that_is_not_json_is_refused_with_its_path(metadata, field):
    assert refused(check_metadata, metadata, LIMIT).field == field


def test_metadata_with_a_cycle_or_too_deep():
    cycle: dict[str, object] = {}
    cycle["list"] = [cycle]
    assert "cycle" in str(refused(check_metadata, cycle, LIMIT))
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert "nested" in str(refused(check_metadata, {"deep": deep}, 1_000_000))


def test_metadata_that_holds_one_object_many_times_over():
    bomb: list[object] = ["x"]
    assert check_metadata({"twice": [bomb, bomb]}, LIMIT) == {"twice": [["x"], ["x"]]}
    for _ in range(30):
        bomb = [bomb, bomb]
    assert "larger" in str(refused(check_metadata, {"bomb": bomb}, LIMIT))


@pytest.mark.parametrize("name", ["relevance", "importance"])
@pytest.mark.parametrize("value", [-0.01, 1.01, True, "0.5", None, 2])
def test_relevance_and_importance_refused(name, value):
    assert refused(check_metadata, {name: value}, LIMIT).field == f"metadata.{name}"


def test_well_known_metadata_accepted():
    metadata = {"relevance": 0, "importance": 1.0, "speaker": "Mélanie 键"}
    assert check_metadata(metadata, LIMIT) == metadata


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)))  # noqa: DTZ001
def test_occurred_at_becomes_utc_with_microseconds(moment):
    local = moment.replace(tzinfo=OFFSET)
    checked = check_metadata({"occurred_at": local.isoformat()}, LIMIT)["occurred_at"]
    assert datetime.fromisoformat(checked) == local
    assert checked.endswith("+00:00")
    assert len(checked) == len("2026-01-01T00:00:00.000000+00:00")
    assert check_metadata({"occurred_at": checked}, LIMIT)["occurred_at"] == checked


@pytest.mark.parametrize(
    "value",
    ["2026-01-01T10:00:00", "2026-01-01", "yesterday", "", 5, None, "0001-01-01T00:00+14:00"],
)
def test_occurred_at_refused(value):
    assert refused(check_metadata, {"occurred_at": value}, LIMIT).field == "metadata.occurred_at"


@pytest.mark.parametrize("value", ["", "a\nb", 7, None])
def test_speaker_refused(value):
    assert refused(check_metadata, {"speaker": value}, LIMIT).field == "metadata.speaker"


def test_scope_dates_become_utc():
    scope = MemoryScope(
        project_id="p-1",
        date_from=datetime(2026, 1, 1, 5, 30, tzinfo=OFFSET),
        date_to=datetime(2026, 1, 1, tzinfo=UTC),
    )
    checked = check_scope(scope)
    assert checked.date_from == checked.date_to == datetime(2026, 1, 1, tzinfo=UTC)
    assert checked.date_from.tzinfo is UTC
    assert check_scope(None) == MemoryScope()


@pytest.mark.traces("REQ-010-030")
def test_naive_or_crossed_dates_of_a_scope_are_refused():
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    aware = datetime(2026, 1, 1, tzinfo=UTC)
    assert refused(check_scope, MemoryScope(date_from=naive)).field == "scope.date_from"
    assert refused(check_scope, MemoryScope(date_to=naive)).field == "scope.date_to"
    crossed = MemoryScope(date_from=aware + timedelta(microseconds=1), date_to=aware)
    assert refused(check_scope, crossed).field == "scope.date_from"


@pytest.mark.parametrize(
    "field", ["session_id", "task_id", "volk_id", "project_id", "portfolio_id"]
)
def test_scope_ids_are_checked(field):
    assert refused(check_scope, MemoryScope(**{field: "a\0"})).field == f"scope.{field}"
    assert refused(check_scope, MemoryScope(**{field: ""})).field == f"scope.{field}"


def test_scope_of_another_type_is_refused():
    assert refused(check_scope, {"session_id": "s"}).field == "scope"


@pytest.mark.traces("REQ-010-019")
@pytest.mark.parametrize("value", [0, -1, 10_001, True, 1.0, "5", None])
def test_limit_refused(value):
    assert refused(check_limit, value).field == "limit"


@given(st.integers(min_value=1, max_value=10_000))
def test_limit_accepted(value):
    assert check_limit(value) == value


@pytest.mark.parametrize("value", [15, 0, -16, True, 64.0, "64"])
def test_max_tokens_refused(value):
    assert refused(check_max_tokens, value).field == "max_tokens"


def test_max_tokens_accepted():
    assert check_max_tokens(16) == 16


@pytest.mark.parametrize("value", [-0.1, 1.1, True, float("nan"), float("inf"), "0.5", None])
def test_min_similarity_refused(value):
    assert refused(check_min_similarity, value).field == "min_similarity"


@given(st.floats(min_value=0, max_value=1))
def test_min_similarity_accepted(value):
    assert check_min_similarity(value) == value


def test_context_ids_are_checked_and_a_blank_focus_is_none():
    context = MemoryContext(volk_id="ENG:ALPHA", session_id="s", focus=" \n")
    assert check_context(context).focus is None
    bad = MemoryContext(volk_id="ENG:ALPHA", session_id="s\n")
    assert refused(check_context, bad).field == "context.session_id"
    bad = MemoryContext(volk_id="ENG:ALPHA", session_id="s", focus="a\0b")
    assert refused(check_context, bad).field == "context.focus"
    assert refused(check_context, "ENG:ALPHA").field == "context"


def test_classification_by_member_or_name():
    assert check_classification("shared") is MemoryClassification.SHARED
    assert check_classification(MemoryClassification.SYSTEM) is MemoryClassification.SYSTEM
    for value in ("public", "", None, 1):
        assert refused(check_classification, value).field == "classification"


@pytest.mark.parametrize("value", ["", "  ", "a\0", "\ud800", None, 5, "x" * (64 * 1024 + 1)])
def test_query_refused(value):
    assert refused(check_query, value).field == "query"


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")))
def test_query_accepts_any_text_that_is_not_blank(value):
    if value.strip():
        assert check_query(value) == value


def test_times_are_datetimes():
    assert refused(check_time, "2026-01-01T00:00:00+00:00", "expires_at").field == "expires_at"


@given(identifiers)
def test_no_normalisation_happens(value):
    twin = unicodedata.normalize("NFD", value)
    if twin != value and len(twin.encode()) <= 512:
        assert check_identifier(value, "key") != check_identifier(twin, "key")
