"""Finding by tags, session, task or dates, over both tiers, newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrata_memory.cold.base import ColdStore, FindOrder, Readable
from orchestrata_memory.errors import HOT_TIER, MemoryUnavailableError
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.models import MemoryContext, MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.cold_source import ColdSource
from orchestrata_memory.retrieval.hot_index import HotIndex, place_of
from orchestrata_memory.retrieval.hot_source import HotSource, changed_since
from orchestrata_memory.retrieval.search_rights import SearchRights

_LEAST_PAGE: Final = 64
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    volk_id: str
    scope: MemoryScope
    tags: tuple[str, ...]
    match_all: bool
    order: FindOrder
    limit: int
    include_summaries: bool


class FindPipeline:
    """Finds in both tiers for one caller.

    Traces: REQ-010-012, REQ-010-013, REQ-010-030
    """

    def __init__(
        self,
        hot: HotStore,
        cold: ColdStore,
        index: HotIndex,
        governance: Governance,
    ) -> None:
        self._index = index
        self._governance = governance
        self._hot = HotSource(hot, index)
        self._cold = ColdSource(cold, index)
        self._rights = SearchRights(governance, index, self._cold)

    async def find(
        self,
        context: MemoryContext,
        *,
        scope: MemoryScope,
        tags: Sequence[str] = (),
        match_all: bool = True,
        order: FindOrder = FindOrder.NEWEST,
        limit: int = 10,
        include_summaries: bool = True,
    ) -> list[MemoryRecord]:
        """Memories the caller may read, by `created_at`, then key.

        Args:
            context: The caller.
            scope: Every filter holds for every result; dates are inclusive.
            tags: All of them (`match_all`) or at least one must be there; none: any memory.
            match_all: See `tags`.
            order: Newest or oldest first.
            limit: At most so many; fewer only if fewer qualify.
            include_summaries: False leaves stored summaries out.

        Raises:
            MemoryUnavailableError: A tier that may hold something of the scope does not answer,
                unless it is Redis: then cold answers, without what this process knows to be
                deleted or newer.
        """
        request = _Request(
            volk_id=context.volk_id,
            scope=scope,
            tags=tuple(dict.fromkeys(tags)),
            match_all=match_all,
            order=order,
            limit=limit,
            include_summaries=include_summaries,
        )
        for _ in range(_ATTEMPTS):
            if not await self._hot.synchronised():
                break
            try:
                records, changed = await self._of_both(request)
            except MemoryUnavailableError as error:
                if error.part != HOT_TIER:
                    raise
                break
            if not changed:
                return records
        else:
            return records
        readable = await self._governance.readable(request.volk_id)
        found = self._of_cold(request, readable, frozenset())
        return await self._collect(request, found)

    async def _of_both(self, request: _Request) -> tuple[list[MemoryRecord], bool]:
        """Results, and whether some were left out because they changed meanwhile."""
        # asked after the index is up to date: delegations changed until now are known
        readable = await self._governance.readable(request.volk_id)
        # Asked first: it brings the index up to date, and what follows must be of that moment.
        complete = await self._hot.holds_all(request.scope)
        headers = self._index.find(
            request.scope,
            tags=request.tags,
            match_all=request.match_all,
            readable=readable,
            order=request.order,
            include_summaries=request.include_summaries,
        )
        held = frozenset(header.key for header in headers)
        found = self._of_hot(headers)
        if not complete:
            found = _merged(found, self._of_cold(request, readable, held), request.order)
        return await self._present(await self._collect(request, found), held)

    async def _of_hot(self, headers: Sequence[MemoryRecord]) -> AsyncIterator[MemoryRecord]:
        for header in headers:
            yield header

    async def _of_cold(
        self, request: _Request, readable: Readable | None, held: frozenset[str]
    ) -> AsyncIterator[MemoryRecord]:
        """What only cold holds, page by page, as far as it is asked for."""
        size = max(_LEAST_PAGE, request.limit)
        offset = 0
        while True:
            page = await self._cold.find(
                request.scope,
                tags=request.tags,
                match_all=request.match_all,
                readable=readable,
                order=request.order,
                limit=size,
                offset=offset,
                include_summaries=request.include_summaries,
            )
            for record in page:
                if record.key not in held and self._cold.current(record):
                    yield record
            if len(page) < size:
                return
            offset += size

    async def _collect(
        self, request: _Request, found: AsyncIterator[MemoryRecord]
    ) -> list[MemoryRecord]:
        """The first `limit` that the rules let the caller read."""
        results: list[MemoryRecord] = []
        batch: list[MemoryRecord] = []
        async for record in found:
            batch.append(record)
            if len(batch) >= request.limit - len(results):
                results.extend(await self._allowed(request.volk_id, batch))
                batch = []
                if len(results) >= request.limit:
                    break
        results.extend(await self._allowed(request.volk_id, batch))
        return results[: request.limit]

    async def _allowed(self, volk_id: str, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        answers = await self._rights.may_read(volk_id, records)
        return [record for record, ok in zip(records, answers, strict=True) if ok]

    async def _present(
        self, records: Sequence[MemoryRecord], held: frozenset[str]
    ) -> tuple[list[MemoryRecord], bool]:
        """The records with content, from whichever tier has them by now."""
        states = await self._hot.read([record.key for record in records])
        contents: dict[str, MemoryRecord] = {}
        moved: list[str] = []
        for record in records:
            state = states.get(record.key)
            if state is not None and state.record is not None:
                contents[record.key] = state.record
            elif record.key not in held:
                contents[record.key] = record
            else:
                moved.append(record.key)
        contents.update(await self._cold.get_if_up(moved))
        present = [
            contents[record.key]
            for record in records
            if not changed_since(record.version, states.get(record.key), contents.get(record.key))
        ]
        return present, len(present) < len(records)


async def _merged(
    hot: AsyncIterator[MemoryRecord], cold: AsyncIterator[MemoryRecord], order: FindOrder
) -> AsyncIterator[MemoryRecord]:
    """Two ordered streams as one; the graph's is read no further than needed."""
    first, second = await anext(hot, None), await anext(cold, None)
    while first is not None and second is not None:
        if place_of(first, order) <= place_of(second, order):
            yield first
            first = await anext(hot, None)
        else:
            yield second
            second = await anext(cold, None)
    rest = hot if second is None else cold
    last = first if second is None else second
    while last is not None:
        yield last
        last = await anext(rest, None)
