"""Reads: states of keys, every known key, the change log."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from orchestrata_memory.errors import MemoryStorageError
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.base import ChangeBatch, HotState
from orchestrata_memory.hot.part import READ_CHUNK, HotPart, chunks, load_state
from orchestrata_memory.models import KeyState

_SCAN_COUNT = 1000
_log = logging.getLogger(__name__)


class Reads(HotPart):
    """Reads never write, so they never change a TTL and work on a full or read-only server."""

    async def read(self, keys: Sequence[str]) -> dict[str, HotState]:
        """State of each key in one round trip; see `HotStore.read`.

        A damaged copy hides no other: among several keys it is logged and ``unknown``.

        Raises:
            MemoryStorageError: The copy of the only key asked for is damaged.

        Traces: REQ-010-011
        """
        if not keys:
            return {}
        wanted = list(dict.fromkeys(keys))
        answers = await self._redis.run_many("read", list(chunks(wanted, READ_CHUNK)))
        states = [state for answer in answers for state in answer]
        result: dict[str, HotState] = {}
        for key, state in zip(wanted, states, strict=True):
            try:
                result[key] = load_state(key, state)
            except MemoryStorageError as error:
                if len(wanted) == 1:
                    raise
                _log.error("%s", error)
                result[key] = HotState(state=KeyState.UNKNOWN)
        return result

    async def scan(self) -> AsyncIterator[Sequence[str]]:
        """Every key that has a pointer, in batches; a key may come twice.

        Keys known throughout the scan are all there. To follow what changes meanwhile take a
        cursor of `changes_since` first.
        """
        async for names in self._scan_names(keys.POINTER_PATTERN):
            yield [keys.parse(name).parts[0] for name in names]

    async def changes_since(
        self, cursor: str | None, *, counted: Sequence[str] = ()
    ) -> ChangeBatch:
        """What changed since `cursor`; see `HotStore.changes_since`.

        One round trip; everything acknowledged before the call is in the answer.
        """
        answer: list[Any] = await self._redis.run("changes_since", cursor or "", *counted)
        last, complete, delegations, changed, counts = answer
        return ChangeBatch(
            cursor=last.decode(),
            keys=tuple(key.decode() for key in changed),
            complete=bool(complete),
            delegations_changed=bool(delegations),
            counts={
                name: None if count is None else int(count)
                for name, count in zip(counted, counts, strict=True)
            },
        )

    async def _scan_names(self, pattern: str) -> AsyncIterator[list[str]]:
        cursor: bytes | int = 0
        while True:
            cursor, found = await self._redis.command(
                "SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT
            )
            if found:
                yield [name.decode() for name in found]
            if int(cursor) == 0:
                return
