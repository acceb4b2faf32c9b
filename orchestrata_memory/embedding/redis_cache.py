"""The cache of encodings that processes share, in Redis."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.embedding import token_vectors
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.connection import Connection

TTL_SECONDS: Final = 3600
"""Long enough for a retry or another process; what was deleted leaves nothing behind for long."""

PIECE: Final = "##"
"""Stands for a piece whose text is not kept; counts as one with content."""

_HEADER: Final = struct.Struct(">BI")
_VERSION: Final = 1


class RedisVectorCache:
    """Encodings by model and content hash, gone after a time.

    A value takes about 1.5 KB for the vector and 48 bytes for each content piece, and holds no
    text: token states come back as their signs, for content pieces only, which is what a memory
    keeps of them, and in place of each piece stands `PIECE`.

    Args:
        connection: Its own one, so that it takes no slot from the hot tier; opened when it is
            first needed, closed by `close`.
        ttl_seconds: How long a value lives after it was written.

    Traces: REQ-010-037
    """

    def __init__(self, connection: Connection, *, ttl_seconds: int = TTL_SECONDS) -> None:
        self._connection = connection
        self._ttl = ttl_seconds

    @classmethod
    def from_settings(
        cls, settings: RedisSettings, *, url: str | None = None
    ) -> RedisVectorCache | None:
        """The cache on the hot tier's server; None where no server is configured.

        Args:
            settings: The server.
            url: Given for an embedded server; wins over ``settings.url``.

        Raises:
            MemoryConfigurationError: The URL cannot be understood.
        """
        if url is None and settings.url is not None:
            url = settings.url.get_secret_value()
        return None if url is None else cls(Connection(settings, url))

    async def get_many(self, model: str, hashes: Sequence[str]) -> list[Encoding | None]:
        """What is known of these texts, in order; what cannot be read counts as unknown."""
        if not hashes:
            return []
        await self._connection.open()
        names = [keys.embedding_cache(model, digest) for digest in hashes]
        values: list[object] = await self._connection.command("MGET", *names)
        return [_decode(value) if isinstance(value, bytes) else None for value in values]

    async def put_many(self, model: str, encodings: Mapping[str, Encoding]) -> None:
        """Keep encodings by content hash."""
        await self._connection.open()
        await self._connection.commands(
            [
                ("SET", keys.embedding_cache(model, digest), _encode(encoding), "EX", self._ttl)
                for digest, encoding in encodings.items()
            ]
        )

    async def drop_many(self, model: str, hashes: Sequence[str]) -> None:
        """Forget the texts with these content hashes."""
        if hashes:
            await self._connection.open()
            names = [keys.embedding_cache(model, digest) for digest in hashes]
            await self._connection.command("DEL", *names)

    async def close(self) -> None:
        """Disconnect; a later call connects again."""
        await self._connection.close()


def _encode(encoding: Encoding) -> bytes:
    vector = encoding.vector.astype("<f4").tobytes()
    packed = token_vectors.pack(encoding) if encoding.tokens is not None else b""
    return _HEADER.pack(_VERSION, len(vector)) + vector + packed


def _decode(value: bytes) -> Encoding | None:
    try:
        version, vector_bytes = _HEADER.unpack_from(value)
        start = _HEADER.size + vector_bytes
        if version != _VERSION or len(value) < start:
            return None
        vector = np.frombuffer(value[_HEADER.size : start], dtype="<f4").astype(np.float32)
        if len(value) == start:
            return Encoding(vector=vector)
        tokens = token_vectors.unpack(value[start:])
    except (struct.error, ValueError, MemoryEmbeddingError):
        return None
    return Encoding(vector=vector, tokens=tokens, pieces=(PIECE,) * len(tokens))
