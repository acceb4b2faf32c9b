"""Finds the times that a query speaks of.

The words (months, weekdays, "yesterday", "three days ago", in the configured language) and their
meaning come from the package dateparser. Which stretch of a text is a time at all is decided
here, strictly: a free search takes "may", "second" or "march on" for dates. Most queries speak of
no time and cost one regular expression; the first one that does loads dateparser's data (about
half a second), so call `warm_up` at start.

Traces: REQ-010-018
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import regex
from dateparser.date import DateDataParser
from dateparser.languages.loader import default_loader

from orchestrata_memory.retrieval.dates import TimeSpan

MAX_SPANS: Final = 4
"""Times looked for in one query."""

MAX_CHARACTERS: Final = 2_000
"""Times are looked for in so much of a query."""

_CODES: Final = {
    "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi", "french": "fr",
    "german": "de", "hungarian": "hu", "italian": "it", "norwegian": "nb", "portuguese": "pt",
    "romanian": "ro", "russian": "ru", "spanish": "es", "swedish": "sv", "turkish": "tr",
}  # fmt: skip
"""Snowball's names of languages to dateparser's codes; other languages know ISO dates only."""

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip

_UNITS_OF_INTEREST = regex.compile(r"\b(?:day|week|fortnight|month|year|decade|\w+day)\b")
_AMBIGUOUS: Final = frozenset({"may", "march", "mar", "sun", "sat"})
"""English names of months and days that are words of their own."""

_LEADS_TO_TIME: Final = (
    "in|on|of|since|during|by|until|till|before|after|around|from|between|to|and|early|mid|late|"
    "last|this|next|every|each|year|im|seit|ab|am|jahr|en|depuis|desde|nel|dal|em|année|año|anno"
)
_YEAR: Final = r"(?:19|20)\d{2}"
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th|\.|º)?"
_NOT_JOINED: Final = r"(?<![\w\-/.:@])", r"(?![\w@]|[\-/:.]\w)"
_NUMBER_WORDS: Final = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"


@dataclass(frozen=True, slots=True)
class _Grammar:
    gate: regex.Pattern[str]
    phrase: regex.Pattern[str]
    code: str | None


def find_times(text: str, *, now: datetime, language: str = "english") -> tuple[TimeSpan, ...]:
    """The times that a text speaks of, relative ones seen from `now`.

    Args:
        text: Any text; never fails.
        now: Aware.
        language: A Snowball name. A language without dateparser data knows ISO dates only.
    """
    grammar, text = _grammar(language), text[:MAX_CHARACTERS]
    if not grammar.gate.search(text):
        return ()
    today = now.astimezone(UTC).replace(hour=12, minute=0, second=0, microsecond=0, tzinfo=None)
    found: list[tuple[regex.Match[str], TimeSpan]] = []
    for match in grammar.phrase.finditer(text):
        try:
            span = _span_of(match, grammar.code, today)
        except (ValueError, OverflowError, TypeError):  # a day that no calendar has
            continue
        if span is not None:
            found.append((match, span))
        if len(found) == MAX_SPANS:
            break
    return _joined(text, found)


def warm_up(language: str = "english") -> None:
    """Load what the first dated query needs; blocking, about half a second."""
    now = datetime.now(UTC)
    find_times("1 day ago, on 7 May 2023, 2023-05-07", now=now, language=language)


def _span_of(match: regex.Match[str], code: str | None, today: datetime) -> TimeSpan | None:
    groups = match.groupdict()
    alone = groups["month_alone"]
    if alone and not groups["lead"] and not _is_meant_as_time(alone, match):
        return None
    if groups["recent"]:
        return _recent(groups["recent_count"] or "1", groups["recent_unit"], today, code)
    if groups["weekend"]:
        return _weekend(today, weeks_ago=1 if groups["weekend"].casefold() != "this" else 0)
    phrase = groups["bare"] or match.group()
    named_year = bool(groups["numeric"] or regex.search(_YEAR, phrase))
    relative = bool(groups["relative"] or groups["weekday"] or groups["lead"])
    moment = _parsed(phrase, code, today)
    if moment is None:
        return None
    start, end = _period(*moment)
    return TimeSpan(start=start, end=end, yearly=not named_year and not relative)


def _is_meant_as_time(name: str, match: regex.Match[str]) -> bool:
    """A month's name alone may be another word, and so may an abbreviation."""
    if name.casefold() not in _AMBIGUOUS:
        return True
    before = match.string[max(0, match.start() - 12) : match.start()]
    leads = regex.search(rf"\b(?:{_LEADS_TO_TIME})\s+$", before, regex.IGNORECASE) is not None
    return leads and name[0].isupper()


def _parsed(phrase: str, code: str | None, today: datetime) -> tuple[datetime, str] | None:
    data = _parser(code, today).get_date_data(phrase)
    return None if data.date_obj is None else (data.date_obj, data.period)


@lru_cache(maxsize=4)
def _parser(code: str | None, today: datetime) -> DateDataParser:
    # dateparser keeps every settings object it was ever given, so `today` changes once a day only
    settings = {"RELATIVE_BASE": today, "PREFER_DATES_FROM": "past", "TIMEZONE": "UTC"}
    return DateDataParser(languages=[code or "en"], settings=settings)


def _period(moment: datetime, period: str) -> tuple[datetime, datetime]:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    if period == "week":
        start = day - timedelta(days=day.weekday())
        return start, start + timedelta(days=7)
    if period == "month":
        start = day.replace(day=1)
        return start, (start + timedelta(days=32)).replace(day=1)
    if period == "year":
        start = day.replace(month=1, day=1)
        return start, start.replace(year=start.year + 1)
    return day, day + timedelta(days=1)


def _recent(count: str, unit: str, today: datetime, code: str | None) -> TimeSpan | None:
    """The last so many days, weeks or months, up to today."""
    since = _parsed(f"{count} {unit} ago", code, today)
    if since is None:
        return None
    start, _ = _period(since[0], "day")
    return TimeSpan(start=start, end=_period(today, "day")[1])


def _weekend(today: datetime, *, weeks_ago: int) -> TimeSpan:
    monday, _ = _period(today, "week")
    saturday = monday + timedelta(days=5 - 7 * weeks_ago)
    return TimeSpan(start=saturday, end=saturday + timedelta(days=2))


def _joined(text: str, found: list[tuple[regex.Match[str], TimeSpan]]) -> tuple[TimeSpan, ...]:
    """Two times with "to", "and" after "between" or "until" between them are one span."""
    if len(found) == 2:  # noqa: PLR2004
        (first, opening), (second, closing) = found
        before = text[: first.start()].casefold().rstrip()
        between = text[first.end() : second.start()].casefold().strip()
        is_range = (between in {"and", "und", "et", "y", "e"} and before.endswith("between")) or (
            between in {"to", "until", "till", "through", "-", "\u2013"}
        )
        if is_range and opening.start < closing.end and opening.yearly == closing.yearly:
            return (TimeSpan(start=opening.start, end=closing.end, yearly=opening.yearly),)
    return tuple(span for _, span in found)


@lru_cache(maxsize=4)
def _grammar(language: str) -> _Grammar:
    code = _CODES.get(language)
    info = default_loader.get_locale(code).info if code else {}
    months = [_forms(info, month) for month in _MONTHS]
    month = _any_of(name for names in months for name in names)
    # an abbreviation alone is too little, unless the language has nothing longer
    alone = _any_of(
        name
        for names in months
        for name in names
        if len(name) > 3 or len(name) == len(names[0])  # noqa: PLR2004
    )
    weekday = _any_of(names[0] for day in _WEEKDAYS if (names := _forms(info, day)))
    relative = _any_of(_relative_phrases(info))
    counted = "|".join(_counted_phrases(info)) or r"(?!)"
    before, after = _NOT_JOINED
    phrase = rf"""{before}(?:
        (?P<iso>{_YEAR}-(?:0?[1-9]|1[0-2])(?:-\d{{1,2}})?)
      | (?P<numeric>\d{{1,2}}(?P<separator>[./-])\d{{1,2}}(?P=separator){_YEAR}
            |\d{{1,2}}(?P<slash>[/-])\d{{1,2}}(?P=slash)\d{{2}})
      | (?P<relative>{relative}|{counted})
      | (?P<recent>(?:last|past|previous)\s+(?P<recent_count>\d{{1,4}}|{_NUMBER_WORDS})\s+
            (?P<recent_unit>days|weeks|months|years))
      | (?P<weekend>last|this|past)\s+weekend
      | (?P<weekday>(?:(?:last|this|next)\s+)?(?:{weekday}))
      | (?P<full>{_DAY}\s+(?:of\s+|de\s+)?(?:{month})\.?(?:,?\s+(?:de\s+)?{_YEAR})?)
      | (?P<month_first>(?:{month})\.?\s+{_DAY}(?!\d)(?:,?\s+{_YEAR})?)
      | (?P<month_year>(?:{month})\.?,?\s+(?:of\s+|de\s+)?{_YEAR})
      | (?:(?P<lead>last|this|past)\s+)?(?P<bare>(?P<month_alone>{alone}))
      | (?<=\b(?:{_LEADS_TO_TIME})\s+)(?P<year>{_YEAR})
    ){after}"""
    flags = regex.IGNORECASE | regex.VERBOSE
    gate = rf"{_YEAR}|\d[./-]\d|weekend|{month}|{weekday}|{relative}|{counted}|(?:last|past)\s"
    return _Grammar(regex.compile(gate, flags), regex.compile(phrase, flags), code)


def _forms(info: dict[str, list[str]], name: str) -> list[str]:
    """What a language calls it, longest first."""
    return sorted(info.get(name, ()), key=len, reverse=True)


def _any_of(words: Iterable[str]) -> str:
    alternatives = sorted({regex.escape(word) for word in words}, key=len, reverse=True)
    return "|".join(word.replace(r"\ ", r"\s+") for word in alternatives) or r"(?!)"


def _relative_phrases(info: dict[str, dict[str, list[str]]]) -> Iterable[str]:
    for meaning, phrases in info.get("relative-type", {}).items():
        if _UNITS_OF_INTEREST.search(meaning):
            yield from phrases


def _counted_phrases(info: dict[str, dict[str, list[str]]]) -> Iterable[str]:
    """Such as "3 days ago", where the number may also be a word."""
    digits, words = r"\d{1,4}", r"(?:\d{1,4}|\p{L}{1,12})"
    for meaning, patterns in info.get("relative-type-regex", {}).items():
        if _UNITS_OF_INTEREST.search(meaning):
            for pattern in patterns:
                head, _, rest = pattern.partition("(")
                tail = rest.partition(")")[2]
                if not tail:
                    continue
                number = words if tail.startswith(" ") else digits
                yield (head + number + tail).replace(" ", r"\s+")
