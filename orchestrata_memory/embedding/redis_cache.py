"""The cache of encodings that processes share, in Redis."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from redis.asyncio import Redis

from orchestrata_memory.embedding import token_vectors
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.hot import keys

DAY_SECONDS: Final = 86_400

_HEADER: Final = struct.Struct(">BII")
_VERSION: Final = 1


class RedisVectorCache:
    """Encodings by model and content hash, gone after a time.

    A value takes about 1.5 KB for the vector and 48 bytes for each content piece. Token states
    come back as their signs, for content pieces only: exactly what a memory keeps of them.

    Args:
        client: Answers in bytes (``decode_responses=False``); closed by its owner.
        ttl_seconds: How long a value lives after it was written.

    Traces: REQ-010-037
    """

    def __init__(self, client: Redis, *, ttl_seconds: int = DAY_SECONDS) -> None:
        self._client = client
        self._ttl = ttl_seconds

    async def get_many(self, model: str, hashes: Sequence[str]) -> list[Encoding | None]:
        """What is known of these texts, in order; what cannot be read counts as unknown."""
        if not hashes:
            return []
        values = await self._client.mget([keys.embedding_cache(model, digest) for digest in hashes])
        return [_decode(value) if isinstance(value, bytes) else None for value in values]

    async def put_many(self, model: str, encodings: Mapping[str, Encoding]) -> None:
        """Keep encodings by content hash."""
        async with self._client.pipeline(transaction=False) as pipeline:
            for digest, encoding in encodings.items():
                pipeline.set(keys.embedding_cache(model, digest), _encode(encoding), ex=self._ttl)
            await pipeline.execute()


def _encode(encoding: Encoding) -> bytes:
    vector = encoding.vector.astype("<f4").tobytes()
    if encoding.tokens is None:
        return _HEADER.pack(_VERSION, len(vector), 0) + vector
    kept = token_vectors.content_positions(encoding.pieces)[: token_vectors.MAX_TOKENS]
    pieces = json.dumps([encoding.pieces[index] for index in kept]).encode()
    packed = token_vectors.pack(encoding)
    return _HEADER.pack(_VERSION, len(vector), len(pieces)) + vector + pieces + packed


def _decode(value: bytes) -> Encoding | None:
    try:
        version, vector_bytes, piece_bytes = _HEADER.unpack_from(value)
        if version != _VERSION:
            return None
        start = _HEADER.size + vector_bytes
        vector = np.frombuffer(value[_HEADER.size : start], dtype="<f4").astype(np.float32)
        if piece_bytes == 0:
            return Encoding(vector=vector)
        pieces = tuple(json.loads(value[start : start + piece_bytes]))
        tokens = token_vectors.unpack(value[start + piece_bytes :])
    except (struct.error, ValueError, MemoryEmbeddingError):
        return None
    if len(tokens) != len(pieces):
        return None
    return Encoding(vector=vector, tokens=tokens, pieces=pieces)
