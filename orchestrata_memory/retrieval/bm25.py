"""BM25's two formulas: what a term tells, and what its repetitions add.

Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.cold.base import TermStatistics
from orchestrata_memory.retrieval.weights import LENGTH_PENALTY, SATURATION

Values = TypeVar("Values", NDArray[np.float32], NDArray[np.float64])


def idf(holding: int, documents: int) -> float:
    """Information of a term: ln(1 + (N - n + 0.5) / (n + 0.5)), never negative.

    Args:
        holding: n, the documents that hold it.
        documents: N, all documents; taken as n where it is less.
    """
    others = max(documents - holding, 0)
    return float(np.log1p((others + 0.5) / (holding + 0.5)))


def information(term: str, statistics: TermStatistics) -> float:
    """`idf` of a term by these statistics."""
    return idf(statistics.frequencies.get(term, 0), statistics.documents)


def saturated(counts: Values, relative_lengths: Values) -> Values:
    """Term counts f as f / (f + k1 (1 - b + b l)), so that each further one adds less.

    Args:
        counts: Of any shape.
        relative_lengths: l, lengths over the mean length; broadcast against `counts`.
    """
    norm: Values = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * relative_lengths)
    shares: Values = counts / (counts + norm)
    return shares
