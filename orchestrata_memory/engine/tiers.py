"""The newest state of a key over both tiers.

Hot is always asked first: an entry leaves hot only after cold holds it, so in this order none is
missed, and a tombstone seen in hot hides what cold still shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.errors import HOT_TIER, MemoryUnavailableError
from orchestrata_memory.hot.base import HotState, HotStore, StoredVector
from orchestrata_memory.models import KeyState, MemoryRecord
from orchestrata_memory.retrieval.hot_index import HotIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A live memory and where it was found.

    Attributes:
        tier: ``hot`` (the entry itself, a pending state or a replica) or ``cold``.
        vector: The vector of that version, where it was asked for and exists.
    """

    record: MemoryRecord
    tier: str
    vector: StoredVector | None = None


class Tiers:
    """Finds the newest version of keys."""

    def __init__(self, hot: HotStore, cold: ColdStore, index: HotIndex) -> None:
        self._hot = hot
        self._cold = cold
        self._index = index

    async def locate(self, key: str) -> Located | None:
        """The newest version of a live key for a change; hot must answer.

        Raises:
            MemoryUnavailableError: Hot is down; or cold is, and only it can know.
        """
        return await self._locate(key, with_vector=False)

    async def locate_many_to_read(self, keys: Sequence[str]) -> dict[str, Located]:
        """As `locate_to_read`; keys of which nothing can be said are left out.

        Raises:
            MemoryUnavailableError: Cold is down, and only it can know.
        """
        try:
            found, missing = _split(keys, await self._hot.read(keys))
            records = await self._cold.get(missing) if missing else {}
        except MemoryUnavailableError as error:
            if error.part != HOT_TIER:
                raise
            found, records = {}, await self._cold.get(keys)
            records = {key: one for key, one in records.items() if self._current(one)}
        for key, record in records.items():
            found[key] = Located(record=record, tier="cold")
        return found

    async def locate_to_read(self, key: str) -> Located | None:
        """As `locate`, but from cold alone while hot is down.

        Raises:
            MemoryUnavailableError: Nothing can be said: hot is down, and cold has no such key, or
                an older version than the one this process knows of.
        """
        return await self._locate_to_read(key, with_vector=False)

    async def _locate_to_read(self, key: str, *, with_vector: bool) -> Located | None:
        try:
            return await self._locate(key, with_vector=with_vector)
        except MemoryUnavailableError as error:
            if error.part != HOT_TIER:
                raise
            located = await self._get_from_cold(key, with_vector=with_vector)
            if located is None or not self._current(located.record):
                raise
            return located

    async def _locate(self, key: str, *, with_vector: bool) -> Located | None:
        found, missing = _split([key], await self._hot.read([key]))
        if not missing:
            return found.get(key)
        return await self._get_from_cold(key, with_vector=with_vector)

    async def locate_with_vector(self, key: str) -> Located | None:
        """As `locate_to_read`, with the vector of that very version where there is one.

        Record and vector are asked for side by side in each tier.
        """
        vectors = asyncio.create_task(self._hot_vector(key))
        try:
            located = await self._locate_to_read(key, with_vector=True)
        finally:
            vector = await vectors
        if located is None or located.vector is not None:
            return located
        if vector is None or vector.version != located.record.version:
            return located
        return replace(located, vector=vector)

    async def _hot_vector(self, key: str) -> StoredVector | None:
        try:
            return (await self._hot.vectors([key])).get(key)
        except MemoryUnavailableError:
            return None

    async def _get_from_cold(self, key: str, *, with_vector: bool) -> Located | None:
        if not with_vector:
            record, vector = (await self._cold.get([key])).get(key), None
        else:
            records, vectors = await asyncio.gather(
                self._cold.get([key]), self._cold.vectors([key])
            )
            record, vector = records.get(key), vectors.get(key)
        if record is None:
            return None
        if vector is not None and vector.version != record.version:
            vector = None
        return Located(record=record, tier="cold", vector=vector)

    def _current(self, record: MemoryRecord) -> bool:
        deleted = self._index.is_deleted(record.key)
        return not deleted and record.version >= self._index.known_version(record.key)

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]:
        """Vectors of the keys from whichever tier has them and is up."""
        vectors: dict[str, StoredVector] = {}
        with suppress(MemoryUnavailableError):
            vectors.update(await self._hot.vectors(keys))
        missing = [key for key in keys if key not in vectors]
        if missing:
            with suppress(MemoryUnavailableError):
                vectors.update(await self._cold.vectors(missing))
        return vectors


def _split(
    keys: Sequence[str], states: dict[str, HotState]
) -> tuple[dict[str, Located], list[str]]:
    found: dict[str, Located] = {}
    missing: list[str] = []
    for key in keys:
        state = states.get(key)
        if state is not None and state.record is not None and state.state is not KeyState.DELETED:
            found[key] = Located(record=state.record, tier="hot")
        elif state is None or state.state is not KeyState.DELETED:
            missing.append(key)
    return found, missing
