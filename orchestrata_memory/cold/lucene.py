"""Index terms as a Lucene query.

Each term is a quoted phrase, so that no character and no word in it (``AND``, ``a:b``, ``dog(``)
means anything to the query parser; the index's whitespace analyzer leaves it whole.
"""

from __future__ import annotations

from collections.abc import Sequence

CLAUSES = 500
"""Terms in one query; Lucene refuses more than 1,024."""


def quoted(term: str) -> str:
    """One term as a phrase."""
    escaped = term.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def any_of(terms: Sequence[str]) -> list[str]:
    """Queries that together find whatever holds one of the terms; blank ones are left out."""
    distinct = [term for term in dict.fromkeys(terms) if term.strip()]
    return [
        " ".join(quoted(term) for term in distinct[start : start + CLAUSES])
        for start in range(0, len(distinct), CLAUSES)
    ]
