"""How a score came about, worked out only for those who ask."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orchestrata_memory.models import ScoreExplanation
from orchestrata_memory.retrieval.lexical import TermTable
from orchestrata_memory.retrieval.pool_view import Floats, PoolView


@dataclass(frozen=True, slots=True)
class Evidence:
    """One kind of evidence: its weight and each candidate's value in [0, 1]."""

    weight: float
    values: Floats


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything behind the scores of one pool, by row of its view.

    Attributes:
        parts: The parts of the score; their weights add up to one.
        match: The parts of the match; their weights add up to one, or there are none.
    """

    view: PoolView
    table: TermTable
    scores: Floats
    parts: dict[str, Evidence]
    match: dict[str, Evidence]

    def cosine(self, row: int) -> float | None:
        """The cosine of a row; None where it is unknown."""
        value = float(self.view.cosines[row])
        return None if math.isnan(value) else value

    def explain(self, row: int) -> ScoreExplanation:
        """How the candidate at a row came to its score."""
        passage = self.view.passages[row]
        cosine = self.cosine(row)
        return ScoreExplanation(
            score=float(self.scores[row]),
            parts=_of_row(self.parts, row),
            match=_of_row(self.match, row),
            terms=self.table.held(row),
            similarity=None if cosine is None else min(max((1 + cosine) / 2, 0.0), 1.0),
            tier=passage.tier,
        )


def _of_row(evidence: dict[str, Evidence], row: int) -> dict[str, tuple[float, float]]:
    return {name: (one.weight, float(one.values[row])) for name, one in evidence.items()}
