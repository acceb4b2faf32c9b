"""Every way to read, by every relation of a Volk to a memory, wherever the memory is.

What a way shows is the text of its answer, its error and its events; a Volk without the right
must find the content in none of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from orchestrata_memory.engine.bound import BoundMemory
from orchestrata_memory.errors import MemoryEngineError
from orchestrata_memory.interfaces import CXPPacket, Topic
from orchestrata_memory.models import MemoryClassification, MemoryScope
from tests.isolation.conftest import Platform

pytestmark = pytest.mark.servers

TOPIC = "the falcon lands at dawn near the harbour"
CLASSES = list(MemoryClassification)
PLACES = ["fresh", "hot", "cold", "replica"]
READERS = {
    # relation of the Volk to a private memory: may it read it?
    "owner": True,
    "shared": True,
    "hop1": True,
    "hop2": True,
    "hop3": True,
    "hop4": False,
    "expired": False,
    "behind-expired": False,
    "revoked": False,
    "behind-owner": False,
    "other": False,
    "admin": False,
    "unregistered": False,
}
DELEGATIONS = [
    ("shared", "hop1"),
    ("hop1", "hop2"),
    ("hop2", "hop3"),
    ("hop3", "hop4"),
    ("shared", "expired"),
    ("expired", "behind-expired"),
    ("shared", "revoked"),
    ("owner", "behind-owner"),
]


@dataclass
class Case:
    """One memory, and the Volks around it.

    Attributes:
        name: Makes ids of this case its own.
        starts: For each registered Volk the key of a memory of its own in the same project.
    """

    platform: Platform
    name: str
    secret: str
    key: str
    starts: dict[str, str]

    def reader(self, relation: str) -> BoundMemory:
        return self.platform.as_(
            f"{relation} {self.name}",
            f"s {relation} {self.name}",
            project_id=self.name,
            task_id=f"t {self.name}",
        )

    @property
    def scope(self) -> MemoryScope:
        return MemoryScope(project_id=self.name)


async def retrieve(case: Case, reader: BoundMemory, _: str) -> object:
    return await reader.retrieve(case.key)


async def search(case: Case, reader: BoundMemory, _: str) -> object:
    return await reader.search(TOPIC, scope=case.scope, limit=100, min_similarity=0)


async def find(case: Case, reader: BoundMemory, _: str) -> object:
    return await reader.find(tags=["falcon"], scope=case.scope, limit=100)


async def related(case: Case, reader: BoundMemory, relation: str) -> object:
    if relation not in case.starts:
        return await reader.related(case.key, depth=3, limit=100)
    return await reader.related(case.starts[relation], depth=3, limit=100)


async def lineage(case: Case, reader: BoundMemory, _: str) -> object:
    return await reader.lineage(case.key)


async def summarize(case: Case, reader: BoundMemory, _: str) -> object:
    return await reader.summarize(f"t {case.name}")


async def keep_summary(case: Case, reader: BoundMemory, _: str) -> object:
    entry = await reader.store_summary(f"t {case.name}")
    if entry is not None:
        await reader.delete(entry.key)
    return entry


async def inject(case: Case, reader: BoundMemory, _: str) -> object:
    packet = CXPPacket()
    return await reader.inject(packet, TOPIC), packet.metadata


async def promote(case: Case, reader: BoundMemory, relation: str) -> object:
    await reader.promote(case.key)
    session = f"s {relation} {case.name}"
    return await reader.find(scope=MemoryScope(project_id=case.name, session_id=session))


async def audit_trail(case: Case, reader: BoundMemory, _: str) -> object:
    return await reader.audit_trail(case.key)


Way = Callable[[Case, BoundMemory, str], Awaitable[object]]
SHOWING: list[Way] = [retrieve, search, find, related, lineage, summarize, keep_summary, inject]
SILENT: list[Way] = [search, find, related, summarize, keep_summary, inject]
"""Ways that leave out what is denied, its key included."""


async def shown(case: Case, way: Way, relation: str) -> str:
    """Everything that this way shows to this Volk."""
    kernel = case.platform.kernel
    before = len(kernel.events)
    try:
        answer = repr(await way(case, case.reader(relation), relation))
    except MemoryEngineError as error:
        answer = f"{error!r} {error} {error.__cause__!r}"
    events = kernel.events[before:]
    assert not any(case.secret in repr(event) for event in events), "an event shows content"
    # Announcing a search names what was found; a stored summary is a memory of the reader's own.
    return answer + repr([e.payload for e in events if e.type == Topic.SEARCH_COMPLETED])


async def arrange(platform: Platform, place: str, classification: MemoryClassification) -> Case:
    name = f"{place}-{classification}-{next(platform.numbers)}"
    for relation in READERS:
        if relation != "unregistered":
            roles = ("team_lead", "system_admin") if relation in {"owner", "admin"} else ()
            platform.directory.register(f"{relation} {name}", *roles)
    secret = f"nightjar{next(platform.numbers)}"
    case = Case(platform, name, secret, "", {})
    for start, end in DELEGATIONS:
        expires = platform.clock() + timedelta(hours=1) if end == "expired" else None
        await case.reader(start).delegate(f"{end} {name}", expires_at=expires)
    platform.clock.ahead += timedelta(hours=2)
    assert await case.reader("shared").revoke(f"revoked {name}")
    for relation in READERS:
        if relation != "unregistered":
            own = await case.reader(relation).store(f"{TOPIC}, says {relation}")
            case.starts[relation] = own.key
    owner = case.reader("owner")
    entry = await owner.store(
        f"{TOPIC} {secret}", tags=["falcon"], classification=MemoryClassification.PRIVATE
    )
    case.key = entry.key
    await owner.share(entry.key, f"shared {name}")
    assert await platform.engine.settle()
    if place in {"cold", "replica"}:
        await platform.engine.close_session(f"s owner {name}")
    if classification is not MemoryClassification.PRIVATE or place == "fresh":
        await owner.update(entry.key, classification=classification)
        assert place == "fresh" or await platform.engine.settle()
    if place == "replica":
        assert await case.reader("admin" if classification != "private" else "shared").promote(
            entry.key
        )
    return case


@pytest.mark.traces("REQ-010-045", "REQ-010-048")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("classification", CLASSES)
async def test_every_way_shows_a_memory_to_those_who_may_read_it(
    platform: Platform, classification: MemoryClassification, place: str
) -> None:
    case = await arrange(platform, place, classification)
    private = classification is MemoryClassification.PRIVATE
    seen: dict[str, dict[str, bool]] = {}
    expected: dict[str, dict[str, bool]] = {}
    for relation, may_read_private in READERS.items():
        may = may_read_private or (not private and relation != "unregistered")
        ways = [way for way in SHOWING if way is not related or place != "fresh"]
        texts = {way: await shown(case, way, relation) for way in ways}
        seen[relation] = {way.__name__: case.secret in text for way, text in texts.items()}
        expected[relation] = {way.__name__: may for way in ways}
        if relation == "owner":
            # What stands beside its own start: the secret itself is where lineage begins.
            expected[relation]["keep_summary"] = True
        if not may:
            for way in SILENT:
                if relation in case.starts or way is not related:
                    assert case.key not in await shown(case, way, relation), (relation, way)
    assert seen == expected


@pytest.mark.parametrize("place", ["hot", "cold"])
async def test_promotion_needs_the_right_to_read_and_a_copy_gives_no_right(
    platform: Platform, place: str
) -> None:
    """Also where another reader's promotion has left a copy in one's own session."""
    case = await arrange(platform, place, MemoryClassification.PRIVATE)
    for relation, may in READERS.items():
        text = await shown(case, promote, relation)
        assert ("MemoryAccessDenied" in text) is not may, relation
    assert not await case.reader("hop4").find(scope=MemoryScope(session_id=f"s owner {case.name}"))


@pytest.mark.traces("REQ-010-047")
async def test_the_trail_is_for_the_owner_and_the_administrator(platform: Platform) -> None:
    case = await arrange(platform, "hot", MemoryClassification.SHARED)
    for relation in READERS:
        text = await shown(case, audit_trail, relation)
        assert ("AuditRecord" in text) is (relation in {"owner", "admin"}), relation
        assert case.secret not in text


@pytest.mark.traces("REQ-010-035")
async def test_a_summary_shows_nothing_to_who_lacks_one_source(platform: Platform) -> None:
    """Shared as it may be: it needs every source, and its lineage leaves out what is denied."""
    case = await arrange(platform, "hot", MemoryClassification.PRIVATE)
    owner = case.reader("owner")
    open_too = await owner.store("harbour notes for all", tags=["falcon"])
    await owner.share(open_too.key, f"other {case.name}")
    summary = await owner.store_summary(f"s owner {case.name}")
    assert summary is not None
    assert case.secret in summary.content
    for relation in ("other", "shared", "hop1"):
        await owner.share(summary.key, f"{relation} {case.name}")
    await platform.engine.settle()
    for relation in ("other", "shared", "hop1", "unregistered"):
        reader = case.reader(relation)
        for way in (reader.retrieve, reader.lineage):
            try:
                answer = repr(await way(summary.key))
            except MemoryEngineError as error:
                answer = repr(error)
            assert case.secret not in answer, (relation, way)
        for hits in (
            await reader.search(TOPIC, scope=case.scope, limit=100, min_similarity=0),
            await reader.find(scope=case.scope, limit=100),
        ):
            assert summary.key not in {hit.key for hit in hits}


@pytest.mark.traces("REQ-010-048")
async def test_a_delegation_ends_with_its_time_on_every_way(platform: Platform) -> None:
    case = await arrange(platform, "hot", MemoryClassification.PRIVATE)
    ends = platform.clock() + timedelta(hours=1)
    await case.reader("hop3").delegate(f"other {case.name}", expires_at=ends)
    await case.reader("shared").delegate(f"other {case.name}", expires_at=ends)
    before = {way: case.secret in await shown(case, way, "other") for way in SHOWING}
    platform.clock.ahead += timedelta(hours=2)
    after = {way: case.secret in await shown(case, way, "other") for way in SHOWING}
    assert all(before.values()), before
    assert not any(after.values()), after
