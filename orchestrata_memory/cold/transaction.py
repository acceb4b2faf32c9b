"""One batch of guarded writes inside one transaction.

Every statement takes its rows in the order of their keys, so that two batches take the same locks
in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from neo4j import AsyncManagedTransaction

from orchestrata_memory.cold.base import ColdDelete, ColdPut
from orchestrata_memory.cold.queries import query
from orchestrata_memory.cold.rows import Properties, relationships_of

Parameters = Mapping[str, Any]

_NODES = {
    "BELONGS_TO": "sessions",
    "CREATED_BY": "volks",
    "RELATES_TO": "tasks",
    "PART_OF": "projects",
    "SHARED_WITH": "shares",
}
_ENSURED = {"sessions": "sessions", "volks": "volks", "tasks": "tasks", "projects": "projects"}
_ENSURED |= {"shares": "volks"}

_PUT_ROWS = 16
"""Memories in one statement: packing their vectors keeps the event loop for some milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPut:
    """A put whose properties are known to be sound.

    Attributes:
        vector: None: keep a stored vector of the same text.
    """

    put: ColdPut
    properties: Properties
    vector: Properties | None

    @property
    def key(self) -> str:
        return self.put.record.key

    @property
    def version(self) -> int:
        return self.put.record.version


Prepared = PreparedPut | ColdDelete


async def write_batch(tx: AsyncManagedTransaction, writes: Sequence[Prepared]) -> None:
    """Write what is newer than its guard; the rest changes nothing.

    Traces: REQ-010-028, REQ-010-029
    """
    ordered = sorted(writes, key=lambda write: write.key)
    won = await raise_guards(tx, ordered)
    gone = [write.key for write in ordered if isinstance(write, ColdDelete) and write.key in won]
    puts = [write for write in ordered if isinstance(write, PreparedPut) and write.key in won]
    await _run(tx, "delete_memories", keys=gone)
    if puts:
        await _put(tx, puts)


async def raise_guards(tx: AsyncManagedTransaction, writes: Sequence[Prepared]) -> frozenset[str]:
    """Keys whose guard was below the write's version; their guards are raised.

    The guards of a summary's sources are taken too, at a version nothing is below: else a summary
    and a source of it, written at once, would each not see the other and neither would link them.
    """
    sources = {
        source
        for write in writes
        if isinstance(write, PreparedPut)
        for source in write.put.record.sources
    }
    rows = [
        {
            "key": write.key,
            "version": write.version,
            "deleted": isinstance(write, ColdDelete),
        }
        for write in writes
    ]
    rows += [
        {"key": key, "version": 0, "deleted": False}
        for key in sources.difference(write.key for write in writes)
    ]
    rows.sort(key=itemgetter("key"))
    return frozenset(str(row[0]) for row in await _run(tx, "raise_guards", rows=rows))


async def hold_guards(
    tx: AsyncManagedTransaction, versions: Iterable[tuple[str, int]]
) -> frozenset[str]:
    """Keys that live at just that version; they cannot change until the transaction ends."""
    rows = [{"key": key, "version": version} for key, version in sorted(versions)]
    return frozenset(str(row[0]) for row in await _run(tx, "hold_guards", rows=rows))


async def attach(
    tx: AsyncManagedTransaction, vectors: Mapping[str, tuple[int, Properties]]
) -> None:
    """Set the vectors of the keys that live at just that version."""
    held = await hold_guards(tx, ((key, version) for key, (version, _) in vectors.items()))
    rows = [
        {"key": key, "version": vectors[key][0], "vector": vectors[key][1]} for key in sorted(held)
    ]
    await _run(tx, "attach_vectors", rows=rows)


async def ensure_volks(tx: AsyncManagedTransaction, ids: Iterable[str]) -> None:
    """Create the Volk nodes that are missing."""
    await _run(tx, "ensure_volks", ids=sorted(set(ids)))


async def _put(tx: AsyncManagedTransaction, puts: Sequence[PreparedPut]) -> None:
    links = _links(puts)
    wanted: dict[str, set[str]] = {}
    for relationship, name in _NODES.items():
        ids = {row["id"] for row in links[relationship]}
        wanted.setdefault(_ENSURED[name], set()).update(ids)
    for name, ids in wanted.items():
        await _run(tx, f"ensure_{name}", ids=sorted(ids))
    rows = [{"key": p.key, "properties": p.properties, "vector": p.vector} for p in puts]
    for start in range(0, len(rows), _PUT_ROWS):
        await _run(tx, "put_memories", rows=rows[start : start + _PUT_ROWS])
    keys = [put.key for put in puts]
    await _run(tx, "unlink_memories", keys=[p.key for p in puts if p.version > 1])
    for relationship, name in _NODES.items():
        await _run(tx, f"link_{name}", rows=links[relationship])
    await _link_summaries(tx, keys, links["DERIVED_FROM"])


async def _link_summaries(
    tx: AsyncManagedTransaction, keys: Sequence[str], links: Sequence[Parameters]
) -> None:
    await _run(tx, "unlink_sources", keys=sorted({row["key"] for row in links}))
    awaited = [
        {"key": summary, "id": key}
        for key, summaries in await _run(tx, "take_awaited", keys=keys)
        for summary in summaries
    ]
    made = await _run(tx, "link_summaries", rows=[*links, *awaited])
    linked = {(row[0], row[1]) for row in made}
    missing = [row for row in links if (row["key"], row["id"]) not in linked]
    await _run(tx, "await_sources", rows=missing)


def _links(puts: Sequence[PreparedPut]) -> dict[str, list[dict[str, str]]]:
    links: dict[str, list[dict[str, str]]] = {}
    for put in puts:
        for relationship, ids in relationships_of(put.put.record).items():
            rows = links.setdefault(relationship, [])
            rows.extend({"key": put.key, "id": node} for node in ids)
    return links


async def _run(tx: AsyncManagedTransaction, name: str, **parameters: Any) -> list[list[Any]]:  # noqa: ANN401
    """Run the query of that name; nothing to do for an empty list."""
    if not all(parameters.values()):
        return []
    result = await tx.run(query(name), parameters)
    return [record.values() async for record in result]
