"""Vectors of hot entries and replicas.

``embed:{key}`` holds the vector as a JSON array, as the scheme fixes it; ``vector:{key}`` beside
it holds the same as raw little-endian float32 together with version, model and token vectors, and
is what is read back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.hot import keys as names
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.hot.connection import Argument
from orchestrata_memory.hot.part import HotPart, chunks

_ATTACH_CHUNK = 8
_READ_CHUNK = 256
_DTYPE = np.dtype("<f4")


def vector_arguments(stored: StoredVector) -> tuple[Argument, ...]:
    """Version, model, JSON, raw bytes and token vectors, as the scripts take them.

    Nine digits bring back every float32 exactly.

    Raises:
        MemoryEmbeddingError: A component is not a finite number.
    """
    raw = np.ascontiguousarray(stored.vector, dtype=_DTYPE)
    if raw.ndim != 1 or not np.isfinite(raw).all():
        raise MemoryEmbeddingError("a vector is one row of finite numbers")
    text = "[" + ",".join([f"{value:.9g}" for value in raw.tolist()]) + "]"
    return stored.version, stored.model, text, raw.tobytes(), stored.tokens or b""


class Vectors(HotPart):
    """Vectors beside the entries.

    Traces: REQ-010-027
    """

    async def attach_vectors(self, vectors: Mapping[str, StoredVector]) -> None:
        """Keep vectors whose version still matches; see `HotStore.attach_vectors`.

        One round trip for 8 vectors, as each takes the event loop 0.1 ms; they live as long as
        the longest-living copy.
        """
        for chunk in chunks(list(vectors.items()), _ATTACH_CHUNK):
            arguments = chain.from_iterable((key, *vector_arguments(each)) for key, each in chunk)
            await self._redis.run("attach_vectors", *arguments)

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]:
        """Vectors of the keys that have one; one round trip for 256 keys."""
        result: dict[str, StoredVector] = {}
        for chunk in chunks(list(dict.fromkeys(keys)), _READ_CHUNK):
            answers = await self._redis.commands(
                [
                    ("HMGET", names.vector(key), "version", "model", "vector", "tokens")
                    for key in chunk
                ]
            )
            for key, (version, model, raw, tokens) in zip(chunk, answers, strict=True):
                if raw is not None:
                    result[key] = StoredVector(
                        version=int(version),
                        model=model.decode(),
                        vector=np.frombuffer(raw, dtype=_DTYPE),
                        tokens=tokens,
                    )
        return result

    async def record_matches(self, scores: Mapping[str, Mapping[str, float]]) -> None:
        """Note relevance scores of hits; keys that are not in the index are left out."""
        commands: list[list[Argument]] = []
        for session_id, of_session in scores.items():
            arguments: list[Argument] = []
            for key, score in of_session.items():
                if math.isfinite(score):
                    arguments += (float(score), key)
            if arguments:
                commands.append(["ZADD", names.embedding_index(session_id), "XX", *arguments])
        await self._redis.commands(commands)
