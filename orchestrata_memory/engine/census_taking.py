"""Starting the counts of the census from what cold holds.

Hot takes a count only if nothing was written between being asked for the missing names and being
told the numbers (see `hot.census`), hence the order of calls here.
"""

from __future__ import annotations

from collections.abc import Collection

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.models import census_names
from orchestrata_memory.retrieval.hot_index import HotIndex


class CensusTaker:
    """Counts everything and each project once, and later whatever searches find uncounted."""

    def __init__(self, hot: HotStore, cold: ColdStore, index: HotIndex) -> None:
        self._hot = hot
        self._cold = cold
        self._index = index

    async def begin(self) -> None:
        """Count what cold holds where the hot tier has no counts at all yet."""
        if (await self._hot.census([census_names.ALL]))[census_names.ALL] is None:
            await self._seed([census_names.ALL, *await self._cold.counts()])

    async def count_asked(self) -> None:
        """Count the names that searches asked for in vain since the last call.

        With a new Redis on a graph that has memories, a session or project that began later has
        no count, and its searches ask the graph too until it has. While something is on its way
        to cold, hot would take no count: then none is made, and the next search asks again.
        """
        asked = self._index.take_uncounted()
        if asked and await self._quiet():
            await self._seed(sorted(asked))

    async def _quiet(self) -> bool:
        return not await self._hot.outbox_length() and not await self._hot.dead_letters(1)

    async def _seed(self, names: Collection[str]) -> None:
        known = await self._hot.census(list(names))
        missing = [name for name, count in known.items() if count is None]
        if missing:
            await self._hot.seed_census(await self._counts(missing))

    async def _counts(self, names: Collection[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for name in names:
            if (session := census_names.session_of(name)) is not None:
                counts[name] = await self._cold.count_session(session)
        if others := set(names) - counts.keys():
            known = await self._cold.counts()
            counts |= {name: known.get(name, 0) for name in others}
        return counts
