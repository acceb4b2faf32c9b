"""The shared cache as the service sees it: it may be missing, slow or broken, and never matters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.cache import VectorCache

_logger = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 1.0

T = TypeVar("T")


class GuardedCache:
    """Calls of a shared cache; one that fails or takes too long is a miss.

    Args:
        cache: The cache, or None: every look-up is a miss.
        dimension: Vectors of another one are not used.

    Attributes:
        failures: Calls that failed.
    """

    def __init__(self, cache: VectorCache | None, *, dimension: int) -> None:
        self._cache = cache
        self._dimension = dimension
        self.failures = 0

    @property
    def exists(self) -> bool:
        """Whether there is a cache at all."""
        return self._cache is not None

    async def get(self, model: str, hashes: Sequence[str]) -> dict[str, Encoding]:
        """What is known, by content hash."""
        if self._cache is None or not hashes:
            return {}
        found = await self._guarded(self._cache.get_many(model, hashes))
        return {
            digest: encoding
            for digest, encoding in zip(hashes, found or (), strict=False)
            if encoding is not None and encoding.vector.shape == (self._dimension,)
        }

    async def put(self, model: str, encodings: Mapping[str, Encoding]) -> None:
        """Keep encodings."""
        if self._cache is not None and encodings:
            await self._guarded(self._cache.put_many(model, encodings))

    async def drop(self, model: str, hashes: Sequence[str]) -> None:
        """Forget texts; where that fails they end by themselves."""
        if self._cache is not None and hashes:
            await self._guarded(self._cache.drop_many(model, hashes))

    async def close(self) -> None:
        """Disconnect."""
        if self._cache is not None:
            await self._guarded(self._cache.close())

    async def _guarded(self, call: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await call
        except Exception as error:  # noqa: BLE001 - a cache may fail in any way and is only a cache
            self.failures += 1
            _logger.warning("the shared embedding cache failed: %s", type(error).__name__)
            return None
