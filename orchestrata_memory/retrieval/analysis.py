"""From text to index terms: one analyzer for both tiers and for queries.

A word becomes one term (folded, stemmed). An identifier becomes a term of its own and one for
each of its parts, so ``parse_http_header``, ``parseHttpHeader`` and ``http header`` find one
another. Scripts that are written without blanks become single characters and pairs of them, so
that any part of a text is found.

A term holds letters, marks, digits and the connectors ``_ . / : @ # + -`` only: never a blank or
a control character, so terms can be joined by blanks.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Final

import regex
import Stemmer

from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.retrieval.words import FUNCTION_WORDS, IRREGULAR_FORMS, QUESTION_WORDS

MAX_TERM_CHARACTERS: Final = 64
"""Longer runs (encoded data, mostly) are cut here: nobody asks for them by heart."""

INLINE_CHARACTERS: Final = 10_000
"""Texts up to this length are analysed on the event loop, in milliseconds; others on a thread."""

MAX_QUERY_TERMS: Final = 128
"""More than a question has; a pasted text is known by the terms it repeats."""

_WORD_CACHE: Final = 65_536

_RUN = regex.compile(
    r"(?:\.(?=\p{L}))?[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*"
    r"(?:(?:::|[./:@\-]|(?<=\d),(?=\d{3}(?!\d)))[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*)*(?:\+\+|\#)?"
    r"|(?=\p{Extended_Pictographic})\X"
)
"""A word, or words joined by connectors without a blank (a path, a version), or an emoji."""

_UNSPACED: Final = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc]"
)
_PIECE = regex.compile(rf"(?P<unspaced>(?:{_UNSPACED}\p{{M}}*)+)|(?P<spaced>(?:(?!{_UNSPACED}).)+)")
_HAS_UNSPACED = regex.compile(_UNSPACED)
_PART = regex.compile(
    r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|[\p{L}\p{M}]+|\p{N}+"
)
"""Parts of an identifier: at its connectors, camel humps and between letters and digits."""

_HUMP = regex.compile(r"\p{Ll}\p{Lu}|\p{Lu}\p{Lu}\p{Ll}{2}")
_EMOJI = regex.compile(r"\p{Extended_Pictographic}")
_MARKS = regex.compile(r"(?<=\p{Latin})\p{Mn}+")
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")
_CONNECTOR = regex.compile(r"[^\p{L}\p{M}\p{N}]")
_DOTTED_I: Final = "i\u0307"
"""What the capital letter I with a dot folds to."""


def is_letters(text: str) -> bool:
    """Whether a text is letters and their marks alone; many scripts write vowels as marks."""
    return text.isalpha() or _LETTERS.fullmatch(text) is not None


class TextAnalyzer:
    """Makes index terms; safe to share between threads.

    Args:
        language: Name of a Snowball stemmer, such as ``english`` or ``german``.

    Raises:
        MemoryConfigurationError: There is no such stemmer.

    Traces: REQ-010-016
    """

    def __init__(self, language: str = "english") -> None:
        try:
            self._stemmer = Stemmer.Stemmer(language, 0)
        except KeyError as error:
            raise MemoryConfigurationError(
                f"search.language: no stemmer for {language!r}; choose one of "
                f"{', '.join(Stemmer.algorithms())}"
            ) from error
        self.language = language
        self._function_words = FUNCTION_WORDS.get(language, frozenset())
        self._question_words = QUESTION_WORDS.get(language, frozenset())
        self._irregular: Mapping[str, str] = IRREGULAR_FORMS.get(language, {})
        self._lock = Lock()  # a stemmer serves one thread at a time
        self._known_terms = lru_cache(maxsize=_WORD_CACHE)(self._terms_of_run)

    def terms(self, text: str) -> list[str]:
        """Index terms in text order, repeated as often as they occur, no function words."""
        found: list[str] = []
        for run in _RUN.findall(_normalised(text)):
            found.extend(self._run_terms(run, False))
        return found

    def query_terms(self, text: str) -> tuple[str, ...]:
        """Distinct terms of a query in order, question words dropped.

        A query of question words alone keeps them; one of function words alone has no terms and
        is answered by its vector. Of the first 10,000 characters it is the 128 most frequent terms,
        earlier ones first among equals.
        """
        runs = _RUN.findall(_normalised(text[:INLINE_CHARACTERS]))
        asking = [run for run in runs if run.casefold() not in self._question_words]
        for chosen in (asking, runs):
            terms = Counter(term for run in chosen for term in self._run_terms(run, True))
            if terms:
                kept = {term for term, _ in terms.most_common(MAX_QUERY_TERMS)}
                return tuple(term for term in terms if term in kept)
        return ()

    def is_function_word(self, word: str) -> bool:
        """Whether a word carries grammar or asks, rather than content."""
        folded = word.casefold()
        return folded in self._function_words or folded in self._question_words

    def _run_terms(self, run: str, asked: bool) -> tuple[str, ...]:
        if len(run) > MAX_TERM_CHARACTERS:  # rare, and too long to keep
            return self._terms_of_run(run, asked)
        return self._known_terms(run, asked)

    def _terms_of_run(self, run: str, asked: bool) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._generate(run, asked=asked))

    def _generate(self, run: str, *, asked: bool) -> Iterator[str]:
        if not run[0].isalnum() and _EMOJI.match(run):
            yield run.replace("\ufe0f", "")[:MAX_TERM_CHARACTERS]
            return
        if not _HAS_UNSPACED.search(run):
            yield from self._spaced(run)
            return
        for piece in _PIECE.finditer(run):
            if piece["unspaced"]:
                yield from _pairs(piece["unspaced"].casefold(), singles=not asked)
            else:
                yield from self._spaced(piece["spaced"])

    def _spaced(self, run: str) -> Iterator[str]:
        if is_letters(run) and not _HUMP.search(run):
            yield from self._word(run)
            return
        parts = _PART.findall(run)
        if not _is_identifier(run, parts):
            for part in parts:
                yield from self._word(part)
            return
        whole = run.casefold().lstrip(".").replace(",", "")[:MAX_TERM_CHARACTERS]
        yield whole
        for part in parts:
            if len(part) > 1:
                yield from (term for term in self._word(part) if term != whole)

    def _word(self, word: str) -> Iterator[str]:
        folded = word.casefold().replace(_DOTTED_I, "i")
        if folded in self._function_words:
            return
        if self.language == "english":
            # accents are borrowed there, and hide endings from the stemmer
            folded = _without_accents(folded)
        base = self._irregular.get(folded, folded)
        stem = self._stemmer.stemWord(base) if is_letters(base) else base
        yield _without_accents(stem)[:MAX_TERM_CHARACTERS]


def _normalised(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _without_accents(word: str) -> str:
    """Latin letters without their accents, which many people leave out when they ask."""
    if word.isascii():
        return word
    decomposed = _MARKS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", decomposed)


def _is_identifier(run: str, parts: list[str]) -> bool:
    """Whether the run is a name of its own: more than letters, and not just a hyphenated word."""
    if is_letters(run) or run.isdigit():
        return len(parts) > 1
    connectors = set(_CONNECTOR.findall(run))
    return connectors != {"-"} or any(letter.isdigit() for letter in run)


def _pairs(characters: str, *, singles: bool) -> Iterator[str]:
    """Overlapping pairs; also every single character where the text is indexed."""
    clusters = regex.findall(r"\X", characters)
    if singles or len(clusters) == 1:
        yield from clusters
    for first, second in itertools.pairwise(clusters):
        yield first + second
