"""What the evidence weighs, and switches to leave it out.

All weights are round numbers. They were chosen on conversations (LoCoMo 1 to 5) and on short
unrelated texts (CLINC150); neighbouring round values rank within a point of these, and
weights fitted to the data gained nothing that held on a conversation left out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

RELEVANCE: Final = 0.55
MATCH: Final = 0.33
RECENCY: Final = 0.12
"""Shares of the score. Each is greater than the sum of those after it, so a full difference in
the higher evidence outweighs full differences in all lower evidence (REQ-010-043)."""

NEUTRAL_RELEVANCE: Final = 0.5
"""What an entry without ``metadata["relevance"]`` counts as: neither raised nor lowered."""

KEYWORDS: Final = 3.0
COSINE: Final = 2.0
LATE_WINDOW: Final = 6.0
LATE_OWN: Final = 1.5
SPEAKER: Final = 1.5
TIME: Final = 2.0
IDENTIFIERS: Final = 3.0
"""Shares of the match, before dividing by the sum of those that apply to the query."""

SATURATION: Final = 0.9
LENGTH_PENALTY: Final = 0.2
"""BM25's k1 and b. Low ones suit short texts: a second mention adds little, and a longer entry
is not a worse one."""

KEYWORD_WINDOW: Final = {-3: 0.2, -2: 0.4, -1: 0.6, 1: 0.5, 2: 0.2}
"""By offset in the stream, what a neighbour's words count beside an entry's own: what was said
before tells more than what came after, and less with every step."""

KEYWORD_REACH: Final = {-offset: share for offset, share in KEYWORD_WINDOW.items()}
"""The same seen from the entry that holds a word: what it counts for those around it when
candidates are chosen. An answer is often found by the words of its question."""

LATE_WINDOW_DISCOUNTS: Final = {
    -4: 0.8, -3: 0.85, -2: 0.85, -1: 0.9, 1: 0.85, 2: 0.8, 3: 0.8,
}  # fmt: skip
"""By offset in the stream, the part of a neighbour's word similarity that an entry may use."""

CONTEXT_OFFSETS: Final = tuple(sorted({*KEYWORD_WINDOW, *LATE_WINDOW_DISCOUNTS}))
"""Positions around a candidate whose passages count as its context."""

LATE_DEPTH: Final = 50
"""How many of the best candidates late interaction looks at; 100 gain nothing more."""

TRUST_BEST: Final = 10
TRUST_FROM: Final = 0.4
TRUST_FULL: Final = 0.6
TRUSTED_SHARE: Final = 0.9
"""The mean cosine of the ten best tells how far the vector can be trusted alone: a question and
its answer seldom pass 0.4 with sentence models, a text and its paraphrases seldom stay below 0.6.
Where entries stand for themselves, full trust gives cosine nine tenths of the text's evidence."""

INCOHERENT: Final = 0.02
COHERENT: Final = 0.1
"""Correlations of neighbours between which context starts to count and counts fully. Unrelated
texts measure -0.06 to 0.01, conversations 0.14 to 0.43."""

COHERENCE_PRIOR: Final = 0.2
COHERENCE_PRIOR_PAIRS: Final = 100
"""What is assumed before there is enough to measure, and as if from how many pairs: below a
hundred the measured correlation is off by more than 0.1."""

COHERENCE_PRIOR_ENDS: Final = 400
"""From so many pairs on nothing is assumed: what is measured is off by 0.05 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Which evidence takes part; everything by default. For measuring what each one brings.

    Attributes:
        keywords: BM25F over an entry's own terms.
        context: Neighbours' terms and word pieces count too.
        coherence: Context counts only as far as neighbours have to do with one another; off:
            always fully.
        cosine: Similarity of the vectors.
        trust: Cosine outweighs the rest where it is sure.
        late_interaction: Word pieces against word pieces for the best candidates.
        speaker: The author named in the query.
        first_person: A named author's name is embedded as I.
        times: Dates and relative times.
        identifiers: Exact names such as error codes.
    """

    keywords: bool = True
    context: bool = True
    coherence: bool = True
    cosine: bool = True
    trust: bool = True
    late_interaction: bool = True
    speaker: bool = True
    first_person: bool = True
    times: bool = True
    identifiers: bool = True

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of all ingredients."""
        return tuple(field.name for field in fields(cls))

    def without(self, name: str) -> Ingredients:
        """These without one."""
        return replace(self, **{name: False})


EVERYTHING: Final = Ingredients()
