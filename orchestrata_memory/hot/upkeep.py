"""Upkeep: restore what expired too early, collect what expiry left behind.

The sweep walks the outbox, the dead letters and the key space in bounded steps, each one script,
so that other callers are never held up for long. Doing it again, or twice at once, changes
nothing more.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from orchestrata_memory.hot import codec, keys
from orchestrata_memory.hot.keys import Name, NameKind
from orchestrata_memory.hot.part import chunks
from orchestrata_memory.hot.reads import Reads

FORGET_DAYS = 30
"""A closed session with nothing in hot is forgotten this long after its close."""

CONSUMER_IDLE_SECONDS = 3600.0
"""A worker asks for records every few seconds; one silent for so long is gone."""

_PAGE = 100
_KEYS_CHUNK = 200
_JOBS_CHUNK = 50
_FORGET_CHUNK = 500
_FORGET_SECONDS = timedelta(days=FORGET_DAYS).total_seconds()

_COUNTED = (
    "restored",
    "requeued",
    "entries",
    "index",
    "tags",
    "vectors",
    "pointers",
    "sessions",
)
# Kind to what its removals are counted as, and the command that steps through a large one.
_COLLECTIONS = {
    NameKind.INDEX: ("index", "ZSCAN"),
    NameKind.EMBEDDING_INDEX: ("index", "ZSCAN"),
    NameKind.SESSION: ("index", "SSCAN"),
    NameKind.TAGS: ("tags", "SSCAN"),
    NameKind.REPLICAS: ("pointers", "HSCAN"),
    NameKind.COPIES: ("pointers", "SSCAN"),
    NameKind.SUMMARIES: ("pointers", "SSCAN"),
}
_NAMES: dict[NameKind, Callable[..., str]] = {
    NameKind.INDEX: keys.index,
    NameKind.EMBEDDING_INDEX: keys.embedding_index,
    NameKind.SESSION: keys.session,
    NameKind.TAGS: keys.tagged,
    NameKind.REPLICAS: keys.replicas,
    NameKind.COPIES: keys.copies,
    NameKind.SUMMARIES: keys.summaries,
}


class Upkeep(Reads):
    """What keeps hot tidy and its promises kept.

    Traces: REQ-010-034
    """

    async def sweep(self) -> dict[str, int]:
        """One pass over everything; see `HotStore.sweep`.

        A pending hash is restored when it is gone and renewed below half its TTL, so that its TTL
        never runs out while the sweep runs often enough.

        Returns:
            ``restored`` (hashes that were gone), ``requeued`` (pending states whose record was
            lost from the stream), and removals: ``index`` (members of the sorted sets and of the
            sessions), ``entries`` (hashes that nothing led to), ``tags``, ``vectors``,
            ``pointers`` (with copies and summaries), and ``sessions`` (forgotten).
        """
        counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        for stream in ("outbox", "dead"):
            counts["restored"] += await self._restore(stream)
        async for found in self._scan_names(keys.EVERY_PATTERN):
            counts.update(await self._collect(found))
        before = int(time.time() - _FORGET_SECONDS)
        counts["sessions"] += int(await self._redis.run("forget_sessions", before, _FORGET_CHUNK))
        await self.forget_consumers(idle_seconds=CONSUMER_IDLE_SECONDS)
        return dict(counts)

    async def forget_consumers(self, *, idle_seconds: float) -> None:
        """Drop the outbox's consumers of engines that are gone; none with unconfirmed records."""
        await self._redis.run("forget_consumers", int(idle_seconds * 1000))

    async def _restore(self, stream: str) -> int:
        restored = 0
        start = "-"
        while start:
            last, number = await self._redis.run(
                "restore_pending", stream, start, _PAGE, self._ttl_ms
            )
            restored += int(number)
            start = f"({last.decode()}" if last else ""
        return restored

    async def _collect(self, found: Sequence[str]) -> Counter[str]:
        by_kind: dict[NameKind, list[Name]] = defaultdict(list)
        for text in found:
            name = keys.parse(text)
            by_kind[name.kind].append(name)
        counts: Counter[str] = Counter()
        pointers = [name.parts[0] for name in by_kind[NameKind.POINTER]]
        for chunk in chunks(pointers, _KEYS_CHUNK):
            collected, requeued = await self._redis.run("collect_pointers", *chunk)
            counts.update(pointers=int(collected), requeued=int(requeued))
        vectors = [
            name.parts[0]
            for kind in (NameKind.EMBEDDING, NameKind.VECTOR)
            for name in by_kind[kind]
        ]
        for chunk in chunks(list(dict.fromkeys(vectors)), _KEYS_CHUNK):
            counts["vectors"] += int(await self._redis.run("collect_vectors", *chunk))
        for entries in chunks(by_kind[NameKind.ENTRY], _KEYS_CHUNK):
            parts = [part for name in entries for part in name.parts]
            counts["entries"] += int(await self._redis.run("collect_entries", *parts))
        for kind, (counted_as, _) in _COLLECTIONS.items():
            for names in chunks(by_kind[kind], _JOBS_CHUNK):
                counts[counted_as] += await self._collect_members(kind, names)
        return counts

    async def _collect_members(self, kind: NameKind, names: Sequence[Name]) -> int:
        jobs: list[dict[str, Any]] = [{"parts": name.parts} for name in names]
        removed, large = await self._redis.run("collect_members", kind, codec.dump_json(jobs))
        total = int(removed)
        for position in large:
            total += await self._collect_large(kind, names[position])
        return total

    async def _collect_large(self, kind: NameKind, name: Name) -> int:
        command = _COLLECTIONS[kind][1]
        step = 1 if command == "SSCAN" else 2
        removed = 0
        cursor: bytes | int = 0
        while True:
            cursor, found = await self._redis.command(
                command, _NAMES[kind](*name.parts), cursor, "COUNT", _KEYS_CHUNK
            )
            members = [member.decode() for member in _flat(found)[::step]]
            for chunk in chunks(members, _KEYS_CHUNK):
                job = [{"parts": name.parts, "members": chunk}]
                answer = await self._redis.run("collect_members", kind, codec.dump_json(job))
                removed += int(answer[0])
            if int(cursor) == 0:
                return removed


def _flat(found: Any) -> list[bytes]:  # noqa: ANN401
    """Members and scores in a row, whatever form the driver gave them."""
    if isinstance(found, dict):
        return [item for pair in found.items() for item in pair]
    result: list[bytes] = []
    for item in found:
        if isinstance(item, tuple):
            result += (item[0], b"")
        else:
            result.append(item)
    return result
