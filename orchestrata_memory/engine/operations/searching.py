"""search, find and promote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from orchestrata_memory.engine.background import TaskPool
from orchestrata_memory.engine.doorway import Call, Doorway
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.engine.promoting import Promoter
from orchestrata_memory.engine.rights import READ_RULE, ReadingRights
from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.errors import MemoryNotFoundError, MemoryValidationError
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.interfaces import Topic
from orchestrata_memory.models import MemoryEntry, MemoryRecord, MemoryScope
from orchestrata_memory.models.validation import (
    check_identifier,
    check_limit,
    check_min_similarity,
    check_query,
    check_scope,
    check_tags,
)
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.retrieval.search import SearchHit, SearchOutcome, SearchPipeline

TagMatch = Literal["all", "any"]
_MAX_FIND_TAGS = 64

_MOST_PROMOTED = 50
"""Cold matches of one search that are copied to hot, the best ones: each takes memory there."""


class Searching:
    """Operations that look for memories by what they say or are.

    Traces: REQ-010-012, REQ-010-013, REQ-010-017
    """

    def __init__(
        self,
        *,
        doorway: Doorway,
        search: SearchPipeline,
        find: FindPipeline,
        rights: ReadingRights,
        tiers: Tiers,
        hot: HotStore,
        promoter: Promoter,
        favours: TaskPool,
        notices: Notices,
        promote: bool,
    ) -> None:
        self._doorway = doorway
        self._search = search
        self._find = find
        self._rights = rights
        self._tiers = tiers
        self._hot = hot
        self._promoter = promoter
        self._favours = favours
        self._notices = notices
        self._promote = promote

    async def search(
        self,
        query: str,
        *,
        scope: MemoryScope | None,
        limit: int,
        min_similarity: float,
        explain: bool,
    ) -> list[MemoryEntry]:
        """See `IMemoryEngine.search`; with `explain` each result tells how its score came about."""
        call = self._doorway.enter("search")
        outcome = await self.run(
            call,
            check_query(query),
            scope=check_scope(scope),
            limit=check_limit(limit),
            min_similarity=check_min_similarity(min_similarity),
        )
        await self._doorway.note(call, READ_RULE, f"results={len(outcome.hits)}")
        return [
            hit.record.to_entry(score=hit.score, explanation=hit.explanation if explain else None)
            for hit in outcome.hits
        ]

    async def run(
        self,
        call: Call,
        query: str,
        *,
        scope: MemoryScope,
        limit: int,
        min_similarity: float,
        include_summaries: bool = True,
    ) -> SearchOutcome:
        """Search for the caller with checked arguments, announce it, and promote what matched."""
        outcome = await self._search.search(
            call.context,
            query,
            scope=scope,
            limit=limit,
            min_similarity=min_similarity,
            now=call.at,
            include_summaries=include_summaries,
        )
        await self._notices.emit(
            Topic.SEARCH_COMPLETED,
            {
                "volk_id": call.volk_id,
                "session_id": call.context.session_id,
                "results": len(outcome.hits),
                "keys": [hit.record.key for hit in outcome.hits[:100]],
                "tiers": list(outcome.tiers),
                "degraded": outcome.degraded,
            },
        )
        self._remember(call.context.session_id, outcome.hits)
        return outcome

    def _remember(self, session_id: str, hits: Sequence[SearchHit]) -> None:
        """Note the matches, and bring cold ones back, after the caller has its answer."""
        cold = [hit.record for hit in hits if hit.tier == "cold"]
        if cold and self._promote:
            self._favours.spawn(self._promote_all(session_id, cold[:_MOST_PROMOTED]))
        # A replica's score stands with the reader's session, an entry's with its own.
        matches: dict[str, dict[str, float]] = {}
        for hit in hits:
            if hit.tier == "hot":
                for session in {session_id, hit.record.session_id}:
                    matches.setdefault(session, {})[hit.record.key] = hit.score
        if matches:
            self._favours.spawn(self._hot.record_matches(matches))

    async def _promote_all(self, session_id: str, records: Sequence[MemoryRecord]) -> None:
        await self._promoter.promote(session_id, records)

    async def find(
        self,
        *,
        tags: list[str] | None,
        match: TagMatch,
        scope: MemoryScope | None,
        limit: int,
    ) -> list[MemoryEntry]:
        """Memories by tags, session, task or dates, newest first."""
        call = self._doorway.enter("find")
        if match not in get_args(TagMatch):
            raise MemoryValidationError("match", "must be 'all' or 'any'")
        records = await self._find.find(
            call.context,
            scope=check_scope(scope),
            tags=check_tags(tags, _MAX_FIND_TAGS) if tags else (),
            match_all=match == "all",
            limit=check_limit(limit),
        )
        await self._doorway.note(call, READ_RULE, f"results={len(records)}")
        return [record.to_entry() for record in records]

    async def promote(self, key: str) -> bool:
        """Copy a cold memory into the caller's open session; False when it need not or cannot.

        Raises:
            MemoryNotFoundError: No such key.
            MemoryAccessDeniedError: The caller may not read it.
        """
        call = self._doorway.enter("promote", check_identifier(key, "key"))
        located = await self._tiers.locate(key)
        decision = (
            None if located is None else await self._rights.decide(call.volk_id, located.record)
        )
        if located is None or decision is None:
            await self._doorway.note(call, READ_RULE, "not found")
            raise MemoryNotFoundError(key)
        await self._doorway.require(call, decision)
        await self._doorway.note(call, READ_RULE)
        if located.tier == "hot":
            return False
        return await self._promoter.promote(call.context.session_id, [located.record]) > 0
