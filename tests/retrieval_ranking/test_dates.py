"""Times spoken of in a query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.retrieval.date_phrases import find_times
from orchestrata_memory.retrieval.dates import TimeSpan, closeness
from tests.retrieval_ranking.making import NOW, keys, passage, pool, ranked


def spans(text: str, language: str = "english") -> list[tuple[str, str]]:
    found = find_times(text, now=NOW, language=language)
    return [(f"{one.start:%Y-%m-%d}", f"{one.end:%Y-%m-%d}") for one in found]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("what happened last week?", "2026-01-05", "2026-01-12"),
        ("the plan of yesterday", "2026-01-13", "2026-01-14"),
        ("what did we say three days ago", "2026-01-11", "2026-01-12"),
        ("two weeks ago", "2025-12-29", "2026-01-05"),
        ("last month's report", "2025-12-01", "2026-01-01"),
        ("on 7 May 2023", "2023-05-07", "2023-05-08"),
        ("on May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("release of 2023-05-07?", "2023-05-07", "2023-05-08"),
        ("in March 2022", "2022-03-01", "2022-04-01"),
        ("what did we do in 2022?", "2022-01-01", "2023-01-01"),
        ("last Friday", "2026-01-09", "2026-01-10"),
        ("the last 3 weeks", "2025-12-24", "2026-01-15"),
        ("last weekend", "2026-01-10", "2026-01-12"),
        ("in 3 days", "2026-01-17", "2026-01-18"),
        ("last May", "2025-05-01", "2025-06-01"),
        ("between 3 May 2023 and 10 May 2023", "2023-05-03", "2023-05-11"),
        ("from June 2023 to August 2023", "2023-06-01", "2023-09-01"),
        ("on 25.12.2023", "2023-12-25", "2023-12-26"),
        ("since 12/25/23", "2023-12-25", "2023-12-26"),
        ("in 2023-07", "2023-07-01", "2023-08-01"),
    ],
)
def test_a_time_becomes_a_span(text, start, end):
    assert spans(text) == [(start, end)]


@pytest.mark.parametrize(
    "text",
    [
        "may I ask you something", "march on", "give me a second", "the sun sat on a mat",
        "mon ami", "room 2020", "v2023.05.07 failed", "ticket ABC-2023-05-07", "99999 days ago",
        "31 February 2023", "release 1.2.23", "port 10.0.12", "order 2023-13", "in 2023-13-01",
        "1-2/23", "in 7973 years", "a week has seven days", "now and then", "",
    ],
)  # fmt: skip
def test_other_words_are_no_times(text):
    assert spans(text) == []


@pytest.mark.parametrize(
    ("text", "language", "start"),
    [
        ("was geschah letzte Woche?", "german", "2026-01-05"),
        ("vor drei Tagen", "german", "2026-01-11"),
        ("il y a trois jours", "french", "2026-01-11"),
        ("el 7 de mayo de 2023", "spanish", "2023-05-07"),
        ("2023-05-07", "arabic", "2023-05-07"),
    ],
)
def test_other_languages_have_their_own_words(text, language, start):
    assert [one[0] for one in spans(text, language)] == [start]


def test_a_month_without_a_year_means_that_month_of_any_year():
    times = find_times("who moved in October?", now=NOW)
    for year in (2019, 2023, 2025):
        assert closeness(times, datetime(year, 10, 20, tzinfo=UTC)) == 1.0
        assert closeness(times, datetime(year, 4, 20, tzinfo=UTC)) < 0.01
    assert 0.2 < closeness(times, datetime(2023, 11, 10, tzinfo=UTC)) < 0.9


def test_a_leap_day_of_any_year_has_a_day_in_each():
    times = find_times("on 29 February", now=datetime(2024, 6, 1, tzinfo=UTC))
    assert closeness(times, datetime(2023, 2, 28, 12, tzinfo=UTC)) == 1.0


MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001 - hypothesis wants it naive
    max_value=datetime(9999, 12, 28),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(
    MOMENTS, st.timedeltas(min_value=timedelta(1), max_value=timedelta(366)), MOMENTS, st.booleans()
)
def test_closeness_is_a_share_and_falls_with_distance(start, length, moment, yearly):
    if start.year > 9990:
        return
    span = TimeSpan(start=start, end=start + length, yearly=yearly)
    value = span.closeness(moment)
    assert 0.0 <= value <= 1.0
    if not yearly and moment >= span.end:
        assert span.closeness(moment + timedelta(hours=1)) <= value


@given(
    st.text(alphabet=st.sampled_from("0123456789 -/.:agodysweklntMJy二年"), max_size=30), MOMENTS
)
def test_no_text_and_no_moment_breaks_it(text, now):
    for span in find_times(text, now=now):
        assert span.start < span.end


@pytest.mark.traces("REQ-010-018")
def test_what_happened_then_ranks_above_the_same_at_another_time():
    meetings = [
        passage(
            f"{month:02}", "we met the supplier", occurred_at=datetime(2025, month, 9, tzinfo=UTC)
        )
        for month in range(1, 13)
    ]
    assert keys(ranked("when did we meet the supplier in May?", pool(meetings)))[0] == "05"
    assert keys(ranked("supplier meeting of last month", pool(meetings)))[0] == "12"
    assert keys(ranked("supplier meeting on 9 March 2025", pool(meetings)))[0] == "03"


@pytest.mark.parametrize("text", ["on 25/12/23", "on 2023-12-25", "25.12.2023"])
def test_a_date_in_numbers_names_its_year(text):
    (span,) = find_times(text, now=NOW)
    assert not span.yearly


COUNTS = st.integers(0, 9999).map(str) | st.sampled_from(["one", "two", "a"])
UNITS = st.sampled_from(["days", "weeks", "months", "years", "decades", "Jahren", "jours"])
PHRASES = st.sampled_from(["in {} {}", "{} {} ago", "last {} {}", "vor {} {}", "il y a {} {}"])


@given(
    st.builds(lambda phrase, count, unit: phrase.format(count, unit), PHRASES, COUNTS, UNITS),
    st.sampled_from(["english", "german", "french"]),
    st.datetimes(timezones=st.just(UTC)),
)
def test_no_number_of_days_or_years_breaks_it(text, language, now):
    for span in find_times(text, now=now, language=language):
        assert span.start < span.end
