"""Models for tests: real vectors, with what a test wants to go wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.hashing import HashingModel

DIMENSION = 32


class ScriptedModel:
    """A hashing model that records its calls, can be held, and fails where it is told to."""

    def __init__(self, *, backend: str = "scripted", dimension: int = DIMENSION) -> None:
        self.name = "scripted"
        self.backend = backend
        self.dimension = dimension
        self.calls: list[list[str]] = []
        self.threads: set[int] = set()
        self.loads = 0
        self.bad_texts: set[str] = set()
        self.replaced: dict[str, np.ndarray] = {}
        self.broken: Exception | None = None
        self.load_error: Exception | None = None
        self.noise = 0.0
        self.go = threading.Event()
        self.go.set()
        self._hashing = HashingModel(dimension)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]

    def load(self) -> None:
        self.loads += 1
        if self.load_error is not None:
            raise self.load_error

    def encode(self, texts: Sequence[str], *, with_tokens: bool) -> list[Encoding]:
        self.calls.append(list(texts))
        self.threads.add(threading.get_ident())
        assert all(texts), "an empty text reached the model"
        assert self.go.wait(20)
        if self.broken is not None:
            raise self.broken
        if self.bad_texts & set(texts):
            raise RuntimeError("cannot encode one of these")
        return [
            self._altered(text, encoding)
            for text, encoding in zip(
                texts, self._hashing.encode(texts, with_tokens=with_tokens), strict=True
            )
        ]

    def _altered(self, text: str, encoding: Encoding) -> Encoding:
        vector = self.replaced.get(text, encoding.vector)
        if self.noise:
            vector = vector + self.noise * np.roll(vector, 1)
            vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return Encoding(vector=vector, tokens=encoding.tokens, pieces=encoding.pieces)
