"""What the parts of the hot store share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from orchestrata_memory.errors import MemoryStorageError
from orchestrata_memory.hot import codec
from orchestrata_memory.hot.base import HotState
from orchestrata_memory.hot.connection import Connection
from orchestrata_memory.models import KeyState

T = TypeVar("T")

READ_CHUNK = 256
"""Keys to one call of a script, so that none holds up the server for long."""


class HotPart:
    """Base of the store's parts: the connection and the settings they use."""

    def __init__(self, redis: Connection, *, ttl_ms: int, long_ttl_ms: int, limit: int) -> None:
        self._redis = redis
        self._ttl_ms = ttl_ms
        self._long_ttl_ms = long_ttl_ms
        self._limit = limit


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive slices of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def load_state(key: str, answer: Sequence[object]) -> HotState:
    """The state that the scripts' ``state_of`` answered.

    Raises:
        MemoryStorageError: The copy in Redis cannot be read as an entry.
    """
    match answer:
        case [bytes(state), int(version), bytes(owner), int(replica), int(left), list(flat)]:
            try:
                record = codec.load_record(key, codec.mapping(flat)) if flat else None
            except codec.UnreadableRecordError as error:
                raise MemoryStorageError(
                    f"the hot copy of the key {key!r} is damaged: {error}"
                ) from error
            now = datetime.now(UTC)
            return HotState(
                state=KeyState(state.decode()),
                version=version,
                record=record,
                replica=bool(replica),
                owner=owner.decode() or None,
                expires_at=now + timedelta(milliseconds=left) if left >= 0 else None,
            )
        case _:
            raise MemoryStorageError(f"the hot state of the key {key!r} has an unknown form")
