"""Whether neighbours in a stream have to do with one another, measured on the pool itself.

In a conversation, what comes after an entry is about as far from the query as the entry is: the
cosines of neighbours with the query correlate. In a stream of unrelated texts they do not, and a
neighbour's words would be noise. The correlation (autocorrelation at lag 1, Moran 1950) needs
nothing stored and knows nothing of the data.

The pool is selected by cosine, which alone would push the correlation below zero (a high one next
to an average one). So neighbours are compared within four groups, by whether each of the two is
among the pool's best: within a group, independent neighbours correlate to zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from orchestrata_memory.retrieval.pool_view import Floats, PoolView
from orchestrata_memory.retrieval.weights import (
    COHERENCE_PRIOR,
    COHERENCE_PRIOR_ENDS,
    COHERENCE_PRIOR_PAIRS,
    COHERENT,
    INCOHERENT,
)

_BEST: Final = 50
_BEST_SHARE: Final = 6
_FEWEST: Final = 3
_TINY: Final = 1e-9


def coherence(view: PoolView) -> float:
    """How much context counts: 0 where neighbours mean nothing, 1 where they belong together."""
    first = np.flatnonzero(view.following < len(view.passages))
    pairs = np.stack([view.cosines[first], view.cosines[view.following[first]]])
    pairs = pairs[:, ~np.isnan(pairs).any(axis=0)]
    count = pairs.shape[1]
    measured = _correlation(pairs) if count >= _FEWEST else 0.0
    assumed = COHERENCE_PRIOR_PAIRS * max(0.0, 1 - count / COHERENCE_PRIOR_ENDS)
    believed = (count * measured + assumed * COHERENCE_PRIOR) / (count + assumed)
    return float(np.clip((believed - INCOHERENT) / (COHERENT - INCOHERENT), 0.0, 1.0))


def _correlation(pairs: Floats) -> float:
    values = np.sort(pairs, axis=None)
    best = pairs >= values[-min(_BEST, len(values) // _BEST_SHARE)]
    group = 2 * best[0] + best[1]
    sizes = np.maximum(np.bincount(group, minlength=4), 1)
    centred = np.stack(
        [row - (np.bincount(group, weights=row, minlength=4) / sizes)[group] for row in pairs]
    )
    spread = float(np.sqrt((centred[0] @ centred[0]) * (centred[1] @ centred[1])))
    return float(centred[0] @ centred[1]) / spread if spread > _TINY else 0.0
