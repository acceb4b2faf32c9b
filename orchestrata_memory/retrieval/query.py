"""What a query asks for: its terms, the speaker it names, the times it speaks of."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import regex

from orchestrata_memory.retrieval.analysis import TextAnalyzer, is_letters
from orchestrata_memory.retrieval.date_phrases import find_times
from orchestrata_memory.retrieval.dates import TimeSpan
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients

MAX_NAMES: Final = 16
"""Names asked of the stores at most; more than a question can mean."""

_MAX_WORDS: Final = 200
"""Names are looked for among so many words of a query."""

_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}_.:@\-]*(?<=[\p{L}\p{N}\p{M}_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A query, understood.

    Attributes:
        text: As asked.
        terms: Distinct index terms, for the look-up, the statistics and `Ranked.holds_term`.
        ranking_terms: Those of `terms` whose presence is evidence: a speaker's name is not, it
            is compared with the speaker instead. Equals `terms` when nothing else is asked.
        speaker: The one speaker that the query names, as stored, or None.
        embedding_text: The text to embed: a named speaker speaks in the first person.
        times: The times it speaks of.
        identifiers: Those of `terms` that are names in a code's or a catalogue's sense (letters
            with digits or connectors): who asks for one means that one.
        names: Terms of the speakers' names in it.
        analyzer: The one that made the terms.
    """

    text: str
    terms: tuple[str, ...]
    ranking_terms: tuple[str, ...]
    speaker: str | None = None
    embedding_text: str
    times: tuple[TimeSpan, ...] = ()
    identifiers: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    analyzer: TextAnalyzer = field(repr=False, compare=False)


def name_candidates(text: str, analyzer: TextAnalyzer) -> tuple[str, ...]:
    """Words of a query that may name a speaker, most likely ones first.

    Capitalised words and pairs of them; in a query without capitals every content word. Ask the
    stores which of them speak in the scope (in any case), and pass the answer to `plan_query`.
    """
    words = [
        word
        for word in itertools.islice(_WORD.finditer(text), _MAX_WORDS)
        if not analyzer.is_function_word(word.group())
    ]
    capitalised = [word for word in words if word.group()[0].isupper()] or words
    pairs = [
        text[first.start() : second.end()]
        for first, second in itertools.pairwise(capitalised)
        if text[first.end() : second.start()] == " "
    ]
    singles = [word.group() for word in capitalised]
    return tuple(dict.fromkeys([*pairs, *singles]))[:MAX_NAMES]


def plan_query(
    text: str,
    analyzer: TextAnalyzer,
    *,
    now: datetime,
    known_speakers: Collection[str] = (),
    ingredients: Ingredients = EVERYTHING,
) -> QueryPlan:
    """Understand a query.

    Args:
        text: As asked; any text, never fails.
        analyzer: The one the entries were analysed with.
        now: What relative times are relative to; aware.
        known_speakers: Those of `name_candidates` that speak in the scope, as stored.
        ingredients: Evidence to use; for measuring.
    """
    terms = analyzer.query_terms(text)
    named = [name for name in sorted(known_speakers) if _naming(name).search(text)]
    of_names = frozenset(term for name in named for term in analyzer.query_terms(name))
    speaker = named[0] if len(named) == 1 else None
    in_first_person = speaker is not None and ingredients.first_person
    return QueryPlan(
        text=text,
        terms=terms,
        ranking_terms=tuple(term for term in terms if term not in of_names) or terms,
        speaker=speaker,
        embedding_text=_in_first_person(text, speaker) if speaker and in_first_person else text,
        times=find_times(text, now=now, language=analyzer.language),
        identifiers=tuple(term for term in terms if _is_identifier(term)),
        names=of_names,
        analyzer=analyzer,
    )


def _is_identifier(term: str) -> bool:
    return any(letter.isalpha() for letter in term) and not is_letters(term)


def _naming(name: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?<!\w){regex.escape(name)}(?!\w)", regex.IGNORECASE)


def _in_first_person(text: str, speaker: str) -> str:
    """People speak of themselves as I; their names stand in what others say."""
    possessive = regex.compile(rf"(?<!\w){regex.escape(speaker)}['\u2019]s(?!\w)", regex.IGNORECASE)
    return str(_naming(speaker).sub("I", possessive.sub("my", text)))
