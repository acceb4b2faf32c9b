"""Keyword evidence: BM25F whose fields are an entry and its neighbours in the stream.

Term frequencies of the fields are weighted and added, then saturated once (see bm25). Divided by
what a perfect entry would reach (the sum of the terms' idf), it is the share of the query's
information that the entry and its surroundings hold: in [0, 1), and comparable between queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrata_memory.retrieval.bm25 import saturated
from orchestrata_memory.retrieval.pool_view import Floats, PoolView
from orchestrata_memory.retrieval.weights import KEYWORD_WINDOW


@dataclass(frozen=True, slots=True)
class TermTable:
    """How often each passage of a view holds each term of the query.

    Attributes:
        terms: The query's terms.
        counts: By row and term, with an empty row at the end.
        lengths: Number of terms by row, with a zero at the end.
    """

    terms: tuple[str, ...]
    counts: Floats
    lengths: Floats

    @classmethod
    def of(cls, view: PoolView, terms: tuple[str, ...]) -> TermTable:
        """Count the terms of a query."""
        counts = np.zeros((len(view.passages) + 1, len(terms)))
        columns = {term: column for column, term in enumerate(terms)}
        asked = frozenset(terms)
        texts = [passage.terms for passage in view.passages]
        for row, text in enumerate(texts):
            if not asked.isdisjoint(text):  # most of the context holds none
                for term in asked.intersection(text):
                    counts[row, columns[term]] = text.count(term)
        lengths = np.array([*map(len, texts), 0], dtype=np.float64)
        return cls(terms, counts, lengths)

    def held(self, row: int) -> tuple[str, ...]:
        """The terms that a passage itself holds."""
        present = self.counts[row]
        return tuple(term for column, term in enumerate(self.terms) if present[column])


def keyword_shares(
    view: PoolView,
    table: TermTable,
    information: Mapping[str, float],
    *,
    average_length: float,
    coherence: float,
) -> Floats:
    """Share of the query's information that each candidate and its context hold.

    Args:
        view: The pool.
        table: Its counts of the query's terms.
        information: Weight of the terms that count; others are left out.
        average_length: Mean number of terms of an entry in the scope.
        coherence: What context counts, from 0 to 1.
    """
    weights = np.array([information.get(term, 0.0) for term in table.terms])
    total = float(weights.sum())
    if total == 0.0:
        return np.zeros(view.candidates)
    counts = table.counts[: view.candidates].copy()
    lengths = table.lengths[: view.candidates].copy()
    window = 1.0
    for offset, weight in KEYWORD_WINDOW.items():
        neighbours = view.neighbours[offset]
        counts += coherence * weight * table.counts[neighbours]
        lengths += coherence * weight * table.lengths[neighbours]
        window += coherence * weight
    relative = lengths / max(average_length * window, 1.0)
    shares: Floats = saturated(counts, relative[:, None]) @ weights / total
    return shares


def identifier_shares(view: PoolView, table: TermTable, identifiers: Sequence[str]) -> Floats:
    """Share of the asked identifiers that each candidate itself holds."""
    columns = [column for column, term in enumerate(table.terms) if term in set(identifiers)]
    if not columns:
        return np.zeros(view.candidates)
    shares: Floats = (table.counts[: view.candidates, columns] > 0).mean(axis=1)
    return shares
