"""Sharing, delegation and isolation over every read path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.engine.operations import reading
from orchestrata_memory.errors import (
    MemoryAccessDeniedError,
    MemoryNotFoundError,
    MemoryValidationError,
)
from orchestrata_memory.hot import keys as names
from orchestrata_memory.interfaces import CXPPacket
from orchestrata_memory.models import (
    AuditRecord,
    MemoryClassification,
    MemoryContext,
    MemoryScope,
    memory_context,
)
from tests.engine.conftest import As, RecordingKernel

pytestmark = pytest.mark.servers

SECRET = "the falcon lands at dawn near the harbour"


class NoOffset(tzinfo):
    """A time zone that does not say where it is."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None


async def by_retrieve(engine: MemoryEngine, key: str) -> bool:
    try:
        return await engine.retrieve(key) is not None
    except MemoryAccessDeniedError:
        return False


async def by_search(engine: MemoryEngine, key: str) -> bool:
    return key in {hit.key for hit in await engine.search(SECRET, min_similarity=0)}


async def by_find(engine: MemoryEngine, key: str) -> bool:
    found = await engine.find(tags=["falcon"], scope=MemoryScope(project_id="p-1"))
    return key in {entry.key for entry in found}


async def by_related(engine: MemoryEngine, key: str) -> bool:
    own = await engine.store("a starting point of one's own")
    assert await engine.settle()
    return key in {item.entry.key for item in await engine.related(own.key, depth=3, limit=100)}


async def by_summary(engine: MemoryEngine, key: str) -> bool:
    return key in (await engine.summarize("t-1")).source_keys


async def by_injection(engine: MemoryEngine, key: str) -> bool:
    packet = CXPPacket()
    await engine.inject(packet, SECRET)
    context = packet.metadata["memory_context"]
    assert ("falcon" in context["summary"]) == (key in context["injected_keys"])
    return key in context["injected_keys"]


async def by_promotion(engine: MemoryEngine, key: str) -> bool:
    try:
        await engine.promote(key)
    except MemoryAccessDeniedError:
        return False
    return True


PATHS: list[Callable[[MemoryEngine, str], Awaitable[bool]]] = [
    by_retrieve,
    by_search,
    by_find,
    by_related,
    by_summary,
    by_injection,
    by_promotion,
]

CONTEXT = {"task_id": "t-1", "project_id": "p-1"}


async def readers_by_path(
    engine: MemoryEngine, key: str, volks: list[str]
) -> dict[str, dict[str, bool]]:
    seen: dict[str, dict[str, bool]] = {}
    for volk in volks:
        context = MemoryContext(volk_id=volk, session_id=f"s-{volk}", **CONTEXT)
        with memory_context(context):
            seen[volk] = {path.__name__: await path(engine, key) for path in PATHS}
    return seen


@pytest.mark.traces("REQ-010-045")
@pytest.mark.parametrize("tier", ["hot", "cold"])
@pytest.mark.parametrize("classification", list(MemoryClassification))
async def test_every_read_path_obeys_the_rules(
    engine: MemoryEngine, as_: As, tier: str, classification: MemoryClassification
) -> None:
    with as_("OPS:ADMIN", session_id="conv1", **CONTEXT):
        entry = await engine.store(
            SECRET, tags=["falcon"], classification=MemoryClassification.PRIVATE
        )
        await engine.share(entry.key, "ENG:BETA")
        await engine.update(entry.key, classification=classification)
        assert await engine.settle()
        if tier == "cold":
            await engine.close_session("conv1")
    with as_("ENG:BETA"):
        await engine.delegate("ENG:GAMMA")
    seen = await readers_by_path(
        engine, entry.key, ["OPS:ADMIN", "ENG:BETA", "ENG:GAMMA", "ENG:DELTA"]
    )
    outsider = classification is not MemoryClassification.PRIVATE
    expected = {"OPS:ADMIN": True, "ENG:BETA": True, "ENG:GAMMA": True, "ENG:DELTA": outsider}
    assert seen == {volk: dict.fromkeys(seen[volk], may) for volk, may in expected.items()}


@pytest.mark.traces("REQ-010-045")
async def test_an_unregistered_volk_may_nothing(engine: MemoryEngine, as_: As) -> None:
    with as_(**CONTEXT):
        entry = await engine.store(SECRET, classification=MemoryClassification.SHARED)
    with as_("ENG:NOBODY", **CONTEXT):
        with pytest.raises(MemoryAccessDeniedError, match="registered"):
            await engine.retrieve(entry.key)
        with pytest.raises(MemoryAccessDeniedError):
            await engine.store("x")
        with pytest.raises(MemoryAccessDeniedError):
            await engine.delete(entry.key)
        assert await engine.find(tags=None) == []
    with as_(), pytest.raises(MemoryAccessDeniedError):
        await engine.share(entry.key, "ENG:NOBODY")


@pytest.mark.traces("REQ-010-045", "REQ-010-047")
async def test_only_the_owner_changes_and_denials_are_audited_and_announced(
    engine: MemoryEngine, as_: As, kernel: RecordingKernel
) -> None:
    with as_():
        entry = await engine.store(SECRET, classification=MemoryClassification.SHARED)
    with as_("ENG:BETA"):
        for attempt in (
            engine.update(entry.key, content="x"),
            engine.delete(entry.key),
            engine.share(entry.key, "ENG:GAMMA"),
            engine.unshare(entry.key, "ENG:GAMMA"),
            engine.audit_trail(entry.key),
        ):
            with pytest.raises(MemoryAccessDeniedError) as denied:
                await attempt
            assert "falcon" not in str(denied.value)
    assert len(kernel.of_type("memory.access.denied")) == 5
    with as_():
        trail = await engine.audit_trail(entry.key)
    denials = [(r.operation, r.volk_id) for r in trail if r.outcome == "denied"]
    assert denials == [
        (operation, "ENG:BETA") for operation in ("update", "delete", "share", "unshare", "audit")
    ]
    assert "falcon" not in repr(trail)


async def test_unshare_takes_it_back_at_once(engine: MemoryEngine, as_: As) -> None:
    with as_():
        entry = await engine.store(SECRET)
        await engine.share(entry.key, "ENG:BETA")
        await engine.share(entry.key, "ENG:BETA")
    with as_("ENG:BETA"):
        assert await by_retrieve(engine, entry.key)
    with as_():
        after = await engine.unshare(entry.key, "ENG:BETA")
        await engine.unshare(entry.key, "ENG:BETA")
        await engine.settle()
        trail = [(r.operation, r.detail) for r in await engine.audit_trail(entry.key)]
    assert after.shared_with == ()
    assert trail[1:5] == [
        ("share", "with=ENG:BETA"),
        ("share", "unchanged"),
        ("retrieve", "tier=hot"),
        ("unshare", "from=ENG:BETA"),
    ]
    assert trail[5] == ("unshare", "unchanged")
    with as_("ENG:BETA"):
        assert not await by_retrieve(engine, entry.key)
        assert not await by_search(engine, entry.key)


async def test_the_owner_is_nobody_to_share_with(engine: MemoryEngine, as_: As) -> None:
    with as_():
        entry = await engine.store(SECRET)
        for attempt in (engine.share, engine.unshare):
            with pytest.raises(MemoryValidationError, match="owner"):
                await attempt(entry.key, "ENG:ALPHA")
        assert await engine.retrieve(entry.key) == entry
        with pytest.raises(MemoryAccessDeniedError):
            await engine.delegate("ENG:ALPHA")
    with as_("ENG:BETA"):
        for attempt in (engine.share, engine.unshare):
            with pytest.raises(MemoryAccessDeniedError):
                await attempt(entry.key, "ENG:BETA")


async def test_an_owner_among_the_readers_can_be_taken_out(engine: MemoryEngine, as_: As) -> None:
    """As earlier versions could leave it."""
    with as_():
        entry = await engine.store(SECRET)
        hot = engine.parts.hot
        record = (await hot.read([entry.key]))[entry.key].record
        assert record is not None
        shared = record.changed(shared_with=("ENG:ALPHA", "ENG:BETA"), version=2)
        audit = AuditRecord(
            audit_id="of-an-earlier-version",
            operation="share",
            volk_id="ENG:ALPHA",
            session_id="s-1",
            key=entry.key,
            rule="can_share_memory",
            outcome="allowed",
            detail="with=ENG:ALPHA",
            at=shared.updated_at,
        )
        await hot.replace(shared, audit, expected_version=1, withdrawals=[])
        with pytest.raises(MemoryValidationError, match="owner"):
            await engine.share(entry.key, "ENG:ALPHA")
        after = await engine.unshare(entry.key, "ENG:ALPHA")
        assert (after.shared_with, after.version) == (("ENG:BETA",), 3)
        with pytest.raises(MemoryValidationError, match="owner"):
            await engine.unshare(entry.key, "ENG:ALPHA")


@pytest.mark.traces("REQ-010-047")
async def test_a_denial_is_audited_with_what_was_wanted(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, str] = {}
    append = engine.parts.audit.append

    async def heard(record: AuditRecord) -> None:
        told[record.operation] = record.detail
        await append(record)

    monkeypatch.setattr(engine.parts.audit, "append", heard)
    with as_():
        entry = await engine.store(SECRET)
    attempts = (
        lambda: engine.share(entry.key, "ENG:GAMMA"),
        lambda: engine.unshare(entry.key, "ENG:GAMMA"),
        lambda: engine.delegate("ENG:NOBODY"),
        lambda: engine.store("x", classification=MemoryClassification.SYSTEM),
    )
    with as_("ENG:BETA"):
        for attempt in attempts:
            with pytest.raises(MemoryAccessDeniedError):
                await attempt()
    with as_("ENG:NOBODY"):
        with pytest.raises(MemoryAccessDeniedError):
            await engine.revoke("ENG:BETA")
        with pytest.raises(MemoryAccessDeniedError):
            await engine.migrate_to_cold("s-other")
    assert told == {
        "share": "with=ENG:GAMMA",
        "unshare": "from=ENG:GAMMA",
        "delegate": "delegate=ENG:NOBODY",
        "store": "classification=system",
        "revoke": "delegate=ENG:BETA",
        "migrate_to_cold": "session=s-other",
    }


@pytest.mark.traces("REQ-010-048")
async def test_delegation_chains(engine: MemoryEngine, as_: As) -> None:
    with as_("ENG:ALPHA"):
        shared = await engine.store(SECRET)
        await engine.share(shared.key, "ENG:BETA")
    with as_("ENG:BETA"):
        own = await engine.store("beta's own falcon")
        await engine.delegate("ENG:GAMMA")
    with as_("ENG:GAMMA"):
        await engine.delegate("ENG:DELTA")
        await engine.delegate("ENG:BETA")
    for volk in ("ENG:GAMMA", "ENG:DELTA"):
        with as_(volk):
            assert await by_retrieve(engine, shared.key)
            assert await by_search(engine, shared.key)
            assert not await by_retrieve(engine, own.key)
    with as_("ENG:GAMMA"):
        assert await engine.revoke("ENG:DELTA") is True
        assert await engine.revoke("ENG:DELTA") is False
    with as_("ENG:DELTA"):
        assert not await by_retrieve(engine, shared.key)
        assert not await by_search(engine, shared.key)
    assert await engine.settle()
    in_cold = {(d.delegator, d.delegate): d.revoked for d in await engine.parts.cold.delegations()}
    assert in_cold[("ENG:GAMMA", "ENG:DELTA")] is True
    assert in_cold[("ENG:BETA", "ENG:GAMMA")] is False


@pytest.mark.traces("REQ-010-048")
async def test_a_delegation_expires(engine: MemoryEngine, as_: As) -> None:
    with as_("ENG:BETA"):
        past = datetime.now(UTC) - timedelta(seconds=1)
        with pytest.raises(MemoryValidationError, match="future"):
            await engine.delegate("ENG:GAMMA", expires_at=past)
        naive = datetime(2100, 1, 1)  # noqa: DTZ001
        with pytest.raises(MemoryValidationError, match="time zone"):
            await engine.delegate("ENG:GAMMA", expires_at=naive)


@pytest.mark.traces("REQ-010-014")
@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_results_carry_time_owner_and_score(engine: MemoryEngine, as_: As, tier: str) -> None:
    with as_("ENG:BETA"):
        stored = await engine.store(SECRET)
        await engine.share(stored.key, "ENG:ALPHA")
        if tier == "cold":
            await engine.close_session("s-1")
    with as_("ENG:ALPHA", session_id="s-2"):
        (hit,) = await engine.search("falcon", min_similarity=0, explain=True)
    assert (hit.volk_id, hit.created_at) == ("ENG:BETA", stored.created_at)
    assert hit.relevance_score is not None
    assert 0 < hit.relevance_score <= 1
    assert hit.explanation is not None
    assert hit.explanation.score == pytest.approx(hit.relevance_score)
    assert hit.explanation.tier == tier
    weighed = sum(weight * value for weight, value in hit.explanation.parts.values())
    assert weighed == pytest.approx(hit.relevance_score)


async def test_siblings_with_a_common_prefix_see_nothing_of_each_other(
    engine: MemoryEngine, as_: As
) -> None:
    with as_("ENG:ALPHA", session_id="conv1", project_id="p1", task_id="t1"):
        await engine.store("one falcon")
    with as_("ENG:ALPHA", session_id="conv10", project_id="p10", task_id="t10"):
        await engine.store("ten falcons")
        for scope in (
            MemoryScope(session_id="conv1"),
            MemoryScope(project_id="p1"),
            MemoryScope(task_id="t1"),
        ):
            assert [e.content for e in await engine.find(scope=scope)] == ["one falcon"]
            found = await engine.search("falcon", scope=scope, min_similarity=0)
            assert [e.content for e in found] == ["one falcon"]
        assert (await engine.summarize("conv1")).source_count == 1


@pytest.mark.traces("REQ-010-047")
async def test_the_owner_reads_the_trail_of_what_it_deleted(engine: MemoryEngine, as_: As) -> None:
    with as_():
        entry = await engine.store(SECRET)
        for _ in range(15):
            await engine.retrieve(entry.key)
        await engine.delete(entry.key)
        assert await engine.settle()
        trail = await engine.audit_trail(entry.key, limit=3)
        assert [record.operation for record in trail] == ["retrieve", "retrieve", "delete"]
    with as_("ENG:BETA"), pytest.raises(MemoryAccessDeniedError):
        await engine.audit_trail(entry.key)


async def test_a_delegation_is_audited_with_whom(engine: MemoryEngine, as_: As) -> None:
    with as_("ENG:BETA"):
        await engine.delegate("ENG:GAMMA")
        await engine.revoke("ENG:GAMMA")
    pending = [record for _, record in await engine.parts.hot.pending_audit(100)]
    told = [record.detail for record in pending if record.operation in {"delegate", "revoke"}]
    assert told == ["delegate=ENG:GAMMA", "delegate=ENG:GAMMA"]


@pytest.mark.traces("REQ-010-047", "REQ-010-045")
async def test_the_trail_of_a_deleted_key_stays_its_owners(
    engine: MemoryEngine, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To ask for a key that is gone is allowed, noted, and makes nobody its owner."""
    monkeypatch.setattr(reading, "_LEAST_TRAIL", 3)
    with as_("ENG:ALPHA"):
        entry = await engine.store("a secret of alpha's")
        await engine.share(entry.key, "ENG:GAMMA")
        assert await engine.delete(entry.key)
        assert await engine.settle()
    await engine.parts.hot._redis.command("DEL", names.pointer(entry.key))  # as after ten minutes
    with as_("ENG:BETA"):
        for _ in range(4):
            assert not await engine.delete(entry.key)
        with pytest.raises(MemoryNotFoundError):
            await engine.share(entry.key, "ENG:GAMMA")
        assert await engine.settle()
        with pytest.raises(MemoryAccessDeniedError):
            await engine.audit_trail(entry.key)
    with as_("ENG:ALPHA"):
        trail = await engine.audit_trail(entry.key)
    assert {"store", "share", "delete"} <= {record.operation for record in trail}


@pytest.mark.parametrize(
    "expires_at",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        datetime(2100, 1, 1, tzinfo=NoOffset()),
        datetime(2100, 1, 1),  # noqa: DTZ001 - what is refused
        "2100-01-01",
    ],
)
async def test_an_expiry_that_is_no_moment_is_refused(
    engine: MemoryEngine, as_: As, expires_at: datetime
) -> None:
    with as_(), pytest.raises(MemoryValidationError, match="expires_at"):
        await engine.delegate("ENG:BETA", expires_at=expires_at)
