"""The newest state of a key over both tiers.

Hot is always asked first: an entry leaves hot only after cold holds it, so in this order none is
missed, and a tombstone seen in hot hides what cold still shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    record: MemoryRecord
    tier: str


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
        return (await self.locate_many([key])).get(key)

    async def locate_many(self, keys: Sequence[str]) -> dict[str, Located]:
        """The newest versions of those of the keys that live."""
        states = await self._hot.read(keys)
        found, missing = _split(keys, states)
        for key, record in (await self._cold.get(missing)).items() if missing else ():
            found[key] = Located(record=record, tier="cold")
        return found

    async def locate_to_read(self, key: str) -> Located | None:
        """As `locate`, but from cold alone while hot is down.

        Raises:
            MemoryUnavailableError: Nothing can be said: hot is down, and cold has no such key, or
                an older version than the one this process knows of.
        """
        try:
            return await self.locate(key)
        except MemoryUnavailableError as error:
            if error.part != HOT_TIER:
                raise
            record = (await self._cold.get([key])).get(key)
            if record is None or not self._current(record):
                raise
            return Located(record=record, tier="cold")

    def _current(self, record: MemoryRecord) -> bool:
        deleted = self._index.is_deleted(record.key)
        return not deleted and record.version >= self._index.known_version(record.key)

    async def vectors(self, keys: Sequence[str]) -> dict[str, StoredVector]:
        """Vectors of the keys from whichever tier has them."""
        vectors = await self._hot.vectors(keys)
        missing = [key for key in keys if key not in vectors]
        if missing:
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
