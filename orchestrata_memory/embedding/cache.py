"""Caches of encodings: a bounded one in this process, and the contract of a shared one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrata_memory.embedding.base import Encoding

_OVERHEAD_BYTES = 200
_PIECE_BYTES = 60


class VectorCache(Protocol):
    """A cache that processes share. It may forget anything at any time.

    Callers treat every exception as a miss, so an implementation need not catch its own.
    """

    async def get_many(self, model: str, hashes: Sequence[str]) -> list[Encoding | None]:
        """What is known of the texts with these content hashes, in order; None is a miss."""
        ...

    async def put_many(self, model: str, encodings: Mapping[str, Encoding]) -> None:
        """Keep encodings by content hash, for a bounded time."""
        ...

    async def drop_many(self, model: str, hashes: Sequence[str]) -> None:
        """Forget the texts with these content hashes."""
        ...

    async def close(self) -> None:
        """Disconnect; called once nothing is under way. May be used again afterwards."""
        ...


class EncodingCache:
    """The least recently used encodings of this process.

    Bounded twice: by entries, and by the bytes of their vectors, because the token states of a
    long text weigh a hundred times what its vector does.

    Args:
        max_entries: Most encodings kept.
        max_bytes: Most memory they take, roughly.

    Traces: REQ-010-037
    """

    def __init__(self, *, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, Encoding] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """Bytes the kept encodings take, roughly."""
        return self._bytes

    def get(self, key: str) -> Encoding | None:
        """The encoding, which becomes the most recently used one, or None."""
        encoding = self._entries.get(key)
        if encoding is not None:
            self._entries.move_to_end(key)
        return encoding

    def put(self, key: str, encoding: Encoding) -> None:
        """Keep an encoding; the least recently used ones make room."""
        size = _size(encoding)
        if size > self._max_bytes:
            return
        before = self._entries.pop(key, None)
        if before is not None:
            self._bytes -= _size(before)
        self._entries[key] = encoding
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._bytes -= _size(dropped)

    def drop(self, key: str) -> None:
        """Forget one encoding, if it is there."""
        dropped = self._entries.pop(key, None)
        if dropped is not None:
            self._bytes -= _size(dropped)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0


def _size(encoding: Encoding) -> int:
    tokens = encoding.tokens.nbytes if encoding.tokens is not None else 0
    return encoding.vector.nbytes + tokens + _PIECE_BYTES * len(encoding.pieces) + _OVERHEAD_BYTES
