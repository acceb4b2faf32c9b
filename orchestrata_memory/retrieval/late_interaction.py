"""Late interaction: every word of the query looks for its best counterpart (MaxSim).

Khattab and Zaharia (2020), ColBERT. The entry's side is stored as signs (see
embedding.token_vectors), the query keeps its floats. Words of the query weigh by their
information; function words, and a speaker's name rewritten to I, not at all. A value is divided
by what identical vectors reach against their own signs, the square root of 2/pi, so 1 means that
every word was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.token_vectors import rows_of
from orchestrata_memory.retrieval.pool_view import Floats, PoolView, Rows
from orchestrata_memory.retrieval.weights import LATE_WINDOW_DISCOUNTS

_SAME: Final = math.sqrt(2 / math.pi)

_SIGNS: Final = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
)
"""The eight signs of each byte."""

_BLOCK_ROWS: Final = 128
_BLOCK_PRODUCTS: Final = 200_000
"""Multiplications of one block: OpenBLAS uses more than one thread from 262,144 on."""


def late_interaction(
    view: PoolView,
    rows: Rows,
    query: Encoding,
    weigh: Callable[[str], float],
    *,
    coherence: float,
) -> tuple[Floats, Floats] | None:
    """MaxSim of the candidates at `rows`, alone and with their context.

    Args:
        view: The pool.
        rows: Candidates to look at.
        query: The encoded query.
        weigh: Weight of a word of the query, 0 for one without content.
        coherence: What context counts, from 0 to 1.

    Returns:
        Values in [0, 1] of the entry alone, and of the better of entry and context for each word;
        NaN for a candidate without token vectors. None when nothing can be compared.
    """
    if query.tokens is None or len(query.pieces) == 0 or len(rows) == 0:
        return None
    positions, weights = _weighted_pieces(query.pieces, weigh)
    pieces = query.tokens[positions]
    offsets = LATE_WINDOW_DISCOUNTS if coherence > 0 else {}
    window = [view.neighbours[offset][rows] for offset in offsets]
    best = _best_by_passage(view, [rows, *window], pieces)
    if best is None:
        return None
    own = best[rows]
    seen: NDArray[np.float32] = np.maximum(own, 0.0)
    for discount, neighbours in zip(offsets.values(), window, strict=True):
        seen = np.fmax(seen, coherence * discount * best[neighbours])
    seen[np.isnan(own).any(axis=1)] = np.nan
    return _valued(own, weights), _valued(seen, weights)


def _weighted_pieces(
    pieces: Sequence[str], weigh: Callable[[str], float]
) -> tuple[list[int], NDArray[np.float32]]:
    """Positions of the pieces that count, and their weights, which add up to one."""
    weights = np.zeros(len(pieces), dtype=np.float32)
    for start, stop, word in _words(pieces):
        weights[start:stop] = weigh(word)
    positions = np.flatnonzero(weights > 0).tolist()
    if not positions:
        return list(range(len(pieces))), np.full(len(pieces), 1 / len(pieces), dtype=np.float32)
    chosen = weights[positions]
    return positions, chosen / chosen.sum()


def _words(pieces: Sequence[str]) -> list[tuple[int, int, str]]:
    """Runs of pieces that make a word: start, stop, text."""
    words: list[tuple[int, int, str]] = []
    for index, piece in enumerate(pieces):
        if piece.startswith("##") and words:
            start, _, text = words[-1]
            words[-1] = (start, index + 1, text + piece[2:])
        else:
            words.append((index, index + 1, piece))
    return words


def _best_by_passage(
    view: PoolView, wanted: Sequence[Rows], pieces: NDArray[np.float32]
) -> NDArray[np.float32] | None:
    """By row and piece of the query, the best similarity; NaN for rows without token vectors."""
    dimension = pieces.shape[1]
    packed: list[bytes] = []
    owners: list[int] = []
    lengths: list[int] = []
    asked = np.zeros(len(view.passages) + 1, dtype=np.bool_)
    for rows in wanted:
        asked[rows] = True
    for row in np.flatnonzero(asked[:-1]).tolist():
        signs_of = rows_of(view.passages[row].tokens, dimension)
        if signs_of:
            packed.append(signs_of)
            owners.append(row)
            lengths.append(len(signs_of))
    if not owners:
        return None
    width = (dimension + 7) // 8
    signs = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(-1, width)
    similarity = _similarities(signs, pieces / math.sqrt(dimension))
    ends = np.cumsum(lengths) // width
    starts = np.concatenate([[0], ends[:-1]])
    best = np.full((len(view.passages) + 1, len(pieces)), np.nan, dtype=np.float32)
    best[owners] = np.maximum.reduceat(similarity, starts, axis=0)
    return best


def _similarities(signs: NDArray[np.uint8], pieces: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dot products of rows of packed signs with pieces, block by block.

    A block of unpacked signs stays in the processor's cache, and its product is too small for
    BLAS to wake other threads, which cost far more than they save here.
    """
    count, width = signs.shape
    padded = np.zeros((width * 8, len(pieces)), dtype=np.float32)
    padded[: pieces.shape[1]] = pieces.T
    size = max(1, min(_BLOCK_ROWS, _BLOCK_PRODUCTS // padded.size))
    block = np.empty((size, width, 8), dtype=np.float32)
    similarity = np.empty((count, len(pieces)), dtype=np.float32)
    for start in range(0, count, size):
        rows = signs[start : start + size]
        states = block[: len(rows)]
        np.take(_SIGNS, rows, axis=0, out=states, mode="clip")
        np.matmul(states.reshape(len(rows), -1), padded, out=similarity[start : start + size])
    return similarity


def _valued(similarity: NDArray[np.float32], weights: NDArray[np.float32]) -> Floats:
    values: Floats = np.clip(similarity @ weights / _SAME, 0.0, 1.0).astype(np.float64)
    return values
