"""The ledger against both tiers, after everything was restarted and drained."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import redis

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.hot import keys as names
from orchestrata_memory.models import KeyState, MemoryRecord
from tests.crash.ledger import Ledger, State
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer


@dataclass(slots=True)
class Findings:
    """Breaches, by kind; all empty when every rule held."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    resurrected: list[str] = field(default_factory=list)
    dangling: list[str] = field(default_factory=list)

    @property
    def any(self) -> bool:
        return bool(self.lost or self.doubled or self.resurrected or self.dangling)


async def check(
    engine: MemoryEngine, ledger: Ledger, redis_server: RedisServer, graph: GraphServer
) -> Findings:
    """Compare what was acknowledged with what both tiers hold."""
    findings = Findings()
    await _check_states(engine, ledger, findings)
    await _check_delegations(engine, ledger, findings)
    _check_graph(graph, findings)
    await engine.parts.hot.sweep()
    _check_redis(redis_server, ledger, findings)
    return findings


async def _check_states(engine: MemoryEngine, ledger: Ledger, findings: Findings) -> None:
    keys = list(ledger.acknowledged.keys() | ledger.doubtful.keys())
    cold = await engine.parts.cold.get(keys)
    hot = {}
    for start in range(0, len(keys), 500):
        hot.update(await engine.parts.hot.read(keys[start : start + 500]))
    for key in keys:
        allowed = [ledger.acknowledged.get(key)]
        if key in ledger.doubtful:
            allowed.append(ledger.doubtful[key])
        state = hot[key]
        newest = state.record if state.state is KeyState.LIVE else None
        for found in [cold.get(key)] + ([newest] if newest is not None else []):
            if not any(_agrees(found, one) for one in allowed):
                deleted = allowed == [None] and found is not None
                (findings.resurrected if deleted else findings.lost).append(
                    f"{key}: {_told(found)} instead of {allowed}"
                )


def _agrees(found: MemoryRecord | None, expected: State | None) -> bool:
    if found is None or expected is None:
        return (found is None) == (expected is None)
    return (
        found.content == expected["content"]
        and list(found.shared_with) == expected["shared_with"]
        and found.version == expected["version"]
    )


def _told(found: MemoryRecord | None) -> str:
    if found is None:
        return "nothing"
    return f"version {found.version}, {found.content!r}, shared with {found.shared_with}"


async def _check_delegations(engine: MemoryEngine, ledger: Ledger, findings: Findings) -> None:
    for tier, known in (
        ("hot", await engine.parts.hot.delegations()),
        ("cold", await engine.parts.cold.delegations()),
    ):
        standing = {(d.delegator, d.delegate): not d.revoked for d in known}
        for pair, stands in ledger.delegations.items():
            if pair in ledger.doubtful_delegations:
                continue
            if standing.get(pair, False) != stands:
                findings.lost.append(f"delegation {pair} in {tier}: not {stands}")


_DOUBLED = """
MATCH (m:Memory) WITH m.key AS key, count(*) AS n WHERE n > 1 RETURN key AS what
"""
_LINKED_TWICE = """
MATCH (m:Memory)-[r:BELONGS_TO|CREATED_BY|RELATES_TO|PART_OF]->(x)
WITH m.key AS key, type(r) AS kind, count(*) AS n WHERE n > 1 RETURN key + ' ' + kind AS what
"""
_UNLINKED = """
MATCH (m:Memory)
WHERE NOT EXISTS { (m)-[:BELONGS_TO]->(:Session) } OR NOT EXISTS { (m)-[:CREATED_BY]->(:Volk) }
RETURN m.key AS what
"""
_READERS = """
MATCH (m:Memory) OPTIONAL MATCH (m)-[:SHARED_WITH]->(v:Volk)
WITH m, collect(v.id) AS linked
RETURN m.key AS what, m.shared_with AS named, linked
"""


def _check_graph(graph: GraphServer, findings: Findings) -> None:
    with graph.driver() as driver, driver.session(database=graph.database) as session:
        findings.doubled += [row["what"] for row in session.run(_DOUBLED)]
        findings.doubled += [row["what"] for row in session.run(_LINKED_TWICE)]
        findings.dangling += [f"unlinked: {row['what']}" for row in session.run(_UNLINKED)]
        findings.dangling += [
            f"SHARED_WITH of {row['what']}: {row['linked']}"
            for row in session.run(_READERS)
            if Counter(row["named"] or []) != Counter(row["linked"])
        ]


def _check_redis(server: RedisServer, ledger: Ledger, findings: Findings) -> None:
    with server.client() as client:
        if pending := client.xlen(names.OUTBOX):
            findings.dangling.append(f"{pending} outbox records after a drain")
        if dead := client.xlen(names.DEAD):
            findings.lost.append(f"{dead} dead letters")
        for raw in client.scan_iter(names.EVERY_PATTERN, count=1000):
            _check_name(client, raw, ledger, findings)


def _check_name(client: redis.Redis, raw: str, ledger: Ledger, findings: Findings) -> None:
    name = names.parse(raw)
    match name.kind:
        case names.NameKind.INDEX:
            members = client.zrange(raw, 0, -1)
        case names.NameKind.TAGS:
            members = client.smembers(raw)
        case names.NameKind.VECTOR | names.NameKind.EMBEDDING:
            if not client.exists(names.pointer(name.parts[0])):
                findings.dangling.append(raw)
            return
        case names.NameKind.ENTRY:
            session_id, _, key = name.parts
            if session_id in ledger.closed and ledger.acknowledged.get(key) is not None:
                findings.dangling.append(f"{raw}: still hot after its session closed")
            return
        case _:
            return
    session_id, volk_id = name.parts[:2]
    findings.dangling += [
        f"{raw}: {member}"
        for member in members
        if not client.exists(names.entry(session_id, volk_id, member))
    ]
