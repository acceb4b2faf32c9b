"""The shipped rules: operation by relation by classification."""

from __future__ import annotations

from itertools import product

import pytest

from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance.rulebook import RuleSource, shipped_rules
from orchestrata_memory.models import MemoryClassification
from tests.governance.samples import (
    ADMIN,
    LEAD,
    OTHER,
    OWNER,
    STRANGER,
    VOLKS,
    ChangingDirectory,
    delegation,
    record,
)

CLASSIFICATIONS = ("private", "shared", "system")
GRANTOR = "ENG:A"

# relation of the caller to the memory -> (caller, who it was shared with)
RELATIONS = {
    "owner": (OWNER, ()),
    "other": (OTHER, ()),
    "shared with": (OTHER, (OTHER,)),
    "delegated": (OTHER, (GRANTOR,)),
    "shared with another": (OTHER, ("ENG:B",)),
    "unregistered": (STRANGER, ()),
    "unregistered, shared with": (STRANGER, (STRANGER,)),
    "system_admin": (ADMIN, ()),
}
READS_PRIVATE = {"owner", "shared with", "delegated"}


def may(operation: str, relation: str, classification: str) -> bool:
    """The table of the specification, said once more."""
    if relation.startswith("unregistered"):
        return False
    if operation == "read":
        return classification != "private" or relation in READS_PRIVATE
    if operation == "audit":
        return relation in {"owner", "system_admin"}
    return relation == "owner"


@pytest.mark.traces("REQ-010-045", "REQ-010-049")
@pytest.mark.parametrize(
    ("operation", "relation", "classification"),
    list(product(("read", "update", "delete", "share", "audit"), RELATIONS, CLASSIFICATIONS)),
)
async def test_matrix(governance, operation, relation, classification):
    await governance.set_delegations([delegation(GRANTOR, OTHER)])
    caller, shared_with = RELATIONS[relation]
    memory = record(classification=classification, shared_with=shared_with)
    ask = {
        "read": lambda: governance.can_read(caller, memory),
        "update": lambda: governance.can_update(caller, memory),
        "delete": lambda: governance.can_delete(caller, memory),
        "share": lambda: governance.can_share(caller, "ENG:C", memory),
        "audit": lambda: governance.can_audit(caller, memory.volk_id, memory.key),
    }[operation]
    decision = await ask()
    assert decision.allowed is may(operation, relation, classification)
    assert bool(decision.reason) is not decision.allowed
    if operation == "read":
        assert await governance.can_read_many(caller, [memory]) == [decision.allowed]


@pytest.mark.traces("REQ-010-049", "REQ-010-050")
@pytest.mark.parametrize(
    ("caller", "allowed"),
    [
        (OWNER, {"private"}),
        (LEAD, {"private", "shared"}),
        (ADMIN, {"private", "system"}),
        (STRANGER, set()),
        ("SYS:MEMORY", set()),
    ],
)
async def test_who_may_store_what(governance, caller, allowed):
    for classification in MemoryClassification:
        decision = await governance.can_store(caller, classification)
        assert decision.allowed is (classification.value in allowed)
        assert decision.rule == "can_store_memory"


async def test_reasons_are_said_in_words_and_without_content(governance):
    private = record()
    decisions = {
        "needs the role team_lead": await governance.can_store(OWNER, MemoryClassification.SHARED),
        "not registered": await governance.can_store(STRANGER, MemoryClassification.PRIVATE),
        "is private": await governance.can_read(OTHER, private),
        "not the owner": await governance.can_update(OTHER, private),
        "target is not registered": await governance.can_share(OWNER, STRANGER, private),
        "the role system_admin": await governance.can_audit(OTHER, OWNER, "key-1"),
        "only SYS:MEMORY": await governance.can_migrate(OWNER, "session-1"),
        "delegate is not registered": await governance.can_delegate(OWNER, STRANGER),
        "to itself": await governance.can_delegate(OWNER, OWNER),
    }
    for words, decision in decisions.items():
        assert not decision.allowed
        assert words in decision.reason
        assert "canary" not in decision.reason


async def test_migration_is_for_the_engine(governance):
    assert (await governance.can_migrate("SYS:MEMORY", "session-1")).allowed
    for caller in (OWNER, ADMIN, LEAD, STRANGER):
        assert not (await governance.can_migrate(caller, "session-1")).allowed


async def test_the_engine_reads_and_changes_nothing(governance):
    memory = record(owner="SYS:MEMORY", classification="system")
    for ask in (governance.can_read, governance.can_update, governance.can_delete):
        decision = await ask("SYS:MEMORY", memory)
        assert not decision.allowed
        assert "engine" in decision.reason
    assert not await governance.is_registered("SYS:MEMORY")


@pytest.mark.traces("REQ-010-045")
async def test_the_engines_alias_cannot_be_registered_by_a_kernel(open_governance):
    directory = ChangingDirectory({**VOLKS, "SYS:MEMORY": ("team_lead",)})
    governance = await open_governance(directory=directory)
    assert not await governance.is_registered("SYS:MEMORY")
    assert not (await governance.can_store("SYS:MEMORY", MemoryClassification.PRIVATE)).allowed
    assert not (await governance.can_share(OWNER, "SYS:MEMORY", record())).allowed


async def test_audit_of_a_key_without_an_owner(governance):
    assert not (await governance.can_audit(OWNER, None, "gone")).allowed
    assert (await governance.can_audit(ADMIN, None, "gone")).allowed


async def test_taking_a_delegation_back_needs_nothing_of_the_other_side(governance):
    assert (await governance.can_revoke(OWNER, STRANGER)).allowed
    assert not (await governance.can_revoke(STRANGER, OWNER)).allowed


@pytest.mark.traces("REQ-010-046")
@pytest.mark.parametrize(
    ("grant", "ask"),
    [
        (
            "can_store_memory(Volk, Classification) :-",
            lambda g: g.can_store(OWNER, MemoryClassification.PRIVATE),
        ),
        ("memory_readable_by(Key, Volk) :- memory_owner", lambda g: g.can_read(OWNER, record())),
        (
            "memory_readable_by(Key, _Volk) :- memory_classification(Key, shared)",
            lambda g: g.can_read(OTHER, record(classification="shared")),
        ),
        ("can_update_memory(Volk, Key) :-", lambda g: g.can_update(OWNER, record())),
        ("can_delete_memory(Volk, Key) :-", lambda g: g.can_delete(OWNER, record())),
        ("can_share_memory(Volk, Target, Key) :-", lambda g: g.can_share(OWNER, OTHER, record())),
        ("can_delegate(Volk, Delegate) :-", lambda g: g.can_delegate(OWNER, OTHER)),
        ("can_read_audit(Volk, Key) :-", lambda g: g.can_audit(OWNER, OWNER, "key-1")),
        ("can_migrate_session('SYS:MEMORY'", lambda g: g.can_migrate("SYS:MEMORY", "s")),
    ],
)
async def test_what_a_rule_grants_is_denied_without_it(open_governance, governance, grant, ask):
    assert (await ask(governance)).allowed
    without = await open_governance(rules=RuleSource("memory.pl", _without(grant)))
    assert not (await ask(without)).allowed


def _without(grant: str) -> str:
    """The shipped rules but for the clause that begins with `grant`."""
    text = shipped_rules().text
    start = text.index(f"\n{grant}") + 1
    end = text.index(".\n", start) + 2
    return text[:start] + text[end:]


async def test_a_change_of_the_directory_counts_at_once(open_governance):
    directory = ChangingDirectory({OWNER: ()})
    governance = await open_governance(directory=directory)
    assert not (await governance.can_store(OWNER, MemoryClassification.SHARED)).allowed
    directory.change(OWNER, ("team_lead",))
    assert (await governance.can_store(OWNER, MemoryClassification.SHARED)).allowed
    directory.change(OWNER, None)
    assert not (await governance.can_store(OWNER, MemoryClassification.PRIVATE)).allowed
    assert await governance.can_read_many(OWNER, [record()]) == [False]
    reads = directory.reads
    await governance.can_store(OWNER, MemoryClassification.PRIVATE)
    assert directory.reads == reads  # unchanged revision: not read again


async def test_a_directory_that_cannot_be_asked_permits_nothing(open_governance):
    directory = ChangingDirectory(VOLKS)
    governance = await open_governance(directory=directory)
    directory.broken = True
    with pytest.raises(MemoryGovernanceError, match="directory"):
        await governance.can_read(OWNER, record())
    with pytest.raises(MemoryGovernanceError, match="directory"):
        await governance.can_read_many(OWNER, [record()])
    directory.broken = False
    assert (await governance.can_read(OWNER, record())).allowed


async def test_aliases_of_a_directory_that_are_no_ids_are_left_out(open_governance):
    directory = ChangingDirectory({OWNER: (), "bad\n": (), "\ud800": ()})
    governance = await open_governance(directory=directory)
    assert (await governance.can_read(OWNER, record())).allowed
    health = await governance.health()
    assert "2 entries" in health.message
    assert health.details["volks"] == 1
