"""A deterministic model without weights, for tests and wherever meaning does not matter."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import regex
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.vectors import unit

_WORD = regex.compile(r"\w+|[^\w\s]")
MAX_TOKENS = 512


class HashingModel:
    """Vectors from hashes of words and word pairs: same text, same vector, on every machine.

    Texts that share words are near each other; a paraphrase without shared words is not. It
    loads nothing and takes microseconds, so tests of everything but meaning use it.

    Args:
        dimension: Length of the vectors.
        name: Stored beside every vector; None names it after the dimension.
    """

    backend = "hashing"

    def __init__(self, dimension: int = 384, *, name: str | None = None) -> None:
        self.dimension = dimension
        self.name = name or f"hashing-{dimension}"

    def load(self) -> None:
        """Nothing to load."""

    def encode(self, texts: Sequence[str], *, with_tokens: bool) -> list[Encoding]:
        """Encode texts, in order."""
        return [self._encode(text, with_tokens=with_tokens) for text in texts]

    def _encode(self, text: str, *, with_tokens: bool) -> Encoding:
        words = _WORD.findall(text.lower()) or [text]
        pairs = [f"{a} {b}" for a, b in pairwise(words)]
        states = np.stack([_direction(word, self.dimension) for word in words])
        vector = states.sum(axis=0, dtype=np.float32)
        for pair in pairs:
            vector += 0.5 * _direction(pair, self.dimension)
        if not vector.any():  # opposite words cancelled out exactly
            vector = states[0]
        if not with_tokens:
            return Encoding(vector=unit(vector))
        kept = words[:MAX_TOKENS]
        return Encoding(vector=unit(vector), tokens=states[: len(kept)], pieces=tuple(kept))


@lru_cache(maxsize=4096)
def _direction(word: str, dimension: int) -> NDArray[np.float32]:
    """A unit vector of signs that the word's hash picks; shared, so read-only."""
    seed = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=32).digest()
    stream = hashlib.shake_256(seed).digest((dimension + 7) // 8)
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8), count=dimension)
    signs = unit(bits.astype(np.float32) * 2 - 1)
    signs.setflags(write=False)
    return signs
