"""Texts that mean something to one of the languages they pass through."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

IDENTIFIER_BYTES = 512

FRAGMENTS = {
    "redis": ["*", "?", "[a-z]", ":", "\\", "{tag}", "%", "%3A", "index", "tags", "embed", "ptr"],
    "lua": ["]]", "'", '"', "..", "redis.call('FLUSHALL')", "--[[", "%d", "\\0", "${1}", "ARGV[1]"],
    "cypher": ["'", '"', "`", "\\", "') DETACH DELETE (n)", "}) //", "/*readable*/", "$key", "{k:"],
    "lucene": ["*", "?", "~", "AND (", "OR", "NOT", "a:b", "+", "-", "^2", "/.*/", "[a TO b]"],
    "prolog": ["'", "\\'", ":- halt.", "), halt.", "_", "X", "!", "%", "/*", "|", "[]", "\\x41\\"],
    "logs": ["%s", "%n", "{0}", "{}", "\u2028", "\u202e", "\u200b", "ERROR root", "$(id)", "<b>"],
    "unicode": ["é", "e\u0301", "\u212b", "A\u030a", "ﬁ", "fi", "\u200d", "א", "👩‍👩‍👧", "ß", "SS"],
}
CONTROLS = ["\r\n", "\t", "\x1b[31m", "\x07", "\x85"]
"""Allowed in contents and queries, not in ids."""


def texts(language: str, *, controls: bool = False) -> st.SearchStrategy[str]:
    """Fragments of the language among ordinary letters, blanks and any other characters."""
    any_character = st.characters(exclude_categories=("Cs", "Cc"))
    pieces = [*FRAGMENTS[language], "a", "B", " ", "1"]
    piece = st.sampled_from(pieces + (CONTROLS if controls else [])) | st.text(
        any_character, min_size=1, max_size=2
    )
    return st.lists(piece, min_size=1, max_size=6).map("".join)


def _fits(text: str) -> bool:
    return 1 <= len(text.encode()) <= IDENTIFIER_BYTES


def _twins(text: str) -> list[str]:
    """The text, and others that a careless comparison takes for it."""
    filled = text + "x" * (IDENTIFIER_BYTES - len(text.encode()))
    candidates = [
        text,
        unicodedata.normalize("NFC", text),
        unicodedata.normalize("NFD", text),
        unicodedata.normalize("NFKC", text),
        text.swapcase(),
        text + " ",
        text + "*",
        text + "1",
        text + ":" + text,
        filled,
        filled[:-1] + "y",
    ]
    return [each for each in dict.fromkeys(candidates) if _fits(each)]


def siblings(language: str) -> st.SearchStrategy[list[str]]:
    """Three different ids, alike."""
    return (
        texts(language)
        .filter(_fits)
        .map(_twins)
        .flatmap(lambda twins: st.permutations(twins).map(lambda mixed: mixed[:3]))
    )
