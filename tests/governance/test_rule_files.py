"""A deployment's own rule files: they add, they restrict, and broken ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance.prolog import PrologGovernance
from orchestrata_memory.interfaces import HealthStatus
from orchestrata_memory.models import MemoryClassification
from tests.governance.samples import (
    ADMIN,
    LEAD,
    OTHER,
    OWNER,
    VOLKS,
    ChangingDirectory,
    delegation,
    record,
)

GUIDE = Path(__file__).parents[2] / "specs/010-memory-engine/governance.md"


@pytest.mark.traces("REQ-010-046")
async def test_rules_can_permit_more(open_governance):
    governance = await open_governance(
        own="""
        % Leads read what anyone keeps, and may store system memories.
        can_read_memory(Volk, _Key) :- has_role(Volk, team_lead).
        memory_classification_allowed(Volk, system) :- has_role(Volk, team_lead).
        """
    )
    assert (await governance.can_read(LEAD, record())).allowed
    assert await governance.can_read_many(LEAD, [record(), record(key="2")]) == [True, True]
    assert (await governance.can_store(LEAD, MemoryClassification.SYSTEM)).allowed
    assert not (await governance.can_read(OTHER, record())).allowed


@pytest.mark.traces("REQ-010-046")
async def test_rules_can_forbid_what_is_granted_elsewhere(open_governance):
    governance = await open_governance(
        own="""
        memory_forbidden(can_read_memory(Volk, Key)) :-
            memory_classification(Key, system), \\+ has_role(Volk, system_admin).
        memory_forbidden(can_delete_memory(_, Key)) :- sub_atom(Key, 0, _, _, 'legal-').
        """
    )
    system = record(classification="system")
    decision = await governance.can_read(OTHER, system)
    assert not decision.allowed
    assert "forbids" in decision.reason
    assert (await governance.can_read(ADMIN, system)).allowed
    assert await governance.can_read_many(OTHER, [system, record(classification="shared")]) == [
        False,
        True,
    ]
    assert not (await governance.can_delete(OWNER, record(key="legal-1"))).allowed
    assert (await governance.can_delete(OWNER, record(key="other-1"))).allowed


@pytest.mark.traces("REQ-010-045", "REQ-010-046")
async def test_sharing_can_be_blocked(open_governance):
    governance = await open_governance(own=f"memory_share_blocked('{OWNER}', '{OTHER}').")
    decision = await governance.can_share(OWNER, OTHER, record())
    assert not decision.allowed
    assert "blocked" in decision.reason
    assert (await governance.can_share(OWNER, LEAD, record())).allowed
    assert not (await governance.can_delegate(OWNER, OTHER)).allowed
    assert (await governance.can_delegate(OWNER, LEAD)).allowed


async def test_rules_can_add_volks_roles_and_delegations(open_governance):
    governance = await open_governance(
        own="""
        registered('EXT:GUEST').
        has_role('EXT:GUEST', team_lead).
        memory_delegation('ENG:A', 'EXT:GUEST', never).
        """
    )
    assert (await governance.can_store("EXT:GUEST", MemoryClassification.SHARED)).allowed
    assert (await governance.can_read("EXT:GUEST", record(shared_with=("ENG:A",)))).allowed
    await governance.set_delegations([delegation("ENG:B", OTHER)])
    assert (await governance.can_read("EXT:GUEST", record(shared_with=("ENG:A",)))).allowed


@pytest.mark.parametrize(
    ("own", "narrows"),
    [
        (None, True),
        ("memory_forbidden(can_read_memory(_, _)) :- fail.", True),
        ("memory_share_blocked(a, b).\nmy_helper(X) :- X == 1.", True),
        ("can_read_memory(V, _) :- has_role(V, team_lead).", False),
        ("memory_shared_with(_, V) :- has_role(V, team_lead).", False),
        ("memory_delegation(a, b, never).", False),
        ("memory_readable_by(_, _).", False),
    ],
)
async def test_reads_are_narrowed_beforehand_only_where_no_rule_widens_them(
    open_governance, own, narrows
):
    governance = await open_governance(own=own)
    readable = await governance.readable(LEAD)
    assert (readable is not None) is narrows


@pytest.mark.parametrize(
    ("own", "exact"),
    [
        (None, True),
        ("memory_forbidden(can_delete_memory(_, Key)) :- sub_atom(Key, 0, _, _, 'legal-').", True),
        ("memory_forbidden(can_read_memory(_, Key)) :- sub_atom(Key, 0, _, _, 'legal-').", False),
        ("memory_forbidden(Question) :- arg(1, Question, 'ENG:OUT').", False),
        ("memory_forbidden(_) :- fail.\nmemory_forbidden(can_share_memory(_, _, _)).", False),
    ],
)
async def test_the_prefilter_is_exact_where_no_rule_can_forbid_to_read(open_governance, own, exact):
    governance = await open_governance(own=own)
    readable = await governance.readable(LEAD)
    assert readable is not None
    assert readable.exact is exact


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ok(1).\nbroken(1) :- .\n", 2, "syntax error"),
        ("ok(1).\n\nok(2)\nok(3).\n", 3, "syntax error"),
        ("ok('unclosed).\n", None, "syntax error"),
        ("% x\ncan_read_memory(V) :- registered(V).\n", 2, "can_read_memory/2 is meant"),
        ("memory_owner(a, b, c).", 1, "memory_owner/2 is meant"),
        (":- halt.\n", 1, "directives"),
        ("a.\n:- initialization(shell('true')).", 2, "directives"),
        ("user:can_read_memory(_, _).", 1, "module"),
        ("atom_length(_, _) :- fail.", 1, "permission_error"),
        ("directory_volk('ENG:X').", 1, "belongs to the engine"),
        ("asked_memory(x).", 1, "belongs to the engine"),
        ("registered('SYS:MEMORY').", 1, "cannot be registered"),
        ("?- true.", 1, "query"),
        ("X :- true.", 1, "not a clause"),
        (":- use_module(library(no_such_library)).", 1, "no_such_library"),
    ],
)
async def test_a_broken_file_is_named_with_its_line(open_governance, text, line, words):
    with pytest.raises(MemoryGovernanceError) as caught:
        await open_governance(own=text)
    message = str(caught.value)
    assert words in message
    assert ".pl" in message
    if line is not None:
        assert f"line {line}:" in message


async def test_a_file_that_is_missing_or_not_utf8_is_named(tmp_path):
    missing = tmp_path / "missing.pl"
    latin = tmp_path / "latin.pl"
    latin.write_bytes("ok(1).\nrole('Müller').\n".encode("latin-1"))
    for path, words in ((missing, "cannot be read"), (latin, "line 2: not UTF-8")):
        settings = GovernanceSettings(rule_files=(path,))
        governance = PrologGovernance(settings, ChangingDirectory(VOLKS))
        with pytest.raises(MemoryGovernanceError) as caught:
            await governance.open()
        assert words in str(caught.value)
        assert str(path) in str(caught.value)
        with pytest.raises(MemoryGovernanceError, match="open governance first"):
            await governance.can_read(OWNER, record())


async def test_libraries_grammars_and_any_script_work_in_rules(open_governance):
    governance = await open_governance(
        own="""\
:- encoding(utf8).
:- use_module(library(aggregate)).
:- dynamic trusted/1.
trusted('ИНЖ:Ключ').
greeting --> "hi".
can_delete_memory(Volk, _) :- aggregate_all(count, trusted(Volk), 1), phrase(greeting, `hi`).
""",
        volks={**VOLKS, "ИНЖ:Ключ": ()},
    )
    assert not (await governance.can_delete(OTHER, record())).allowed
    assert (await governance.can_delete("ИНЖ:Ключ", record())).allowed


@pytest.mark.traces("REQ-010-046")
@pytest.mark.parametrize(
    "body",
    [
        "throw(oops)",
        "no_such_predicate(1)",
        "atom_length(_, _)",
        "loops",
        "length(_, N), N < 0",
        "between(1, inf, _), fail",
        "numlist(1, 10000000, L), msort(L, L), fail",
        "halt",
        "halt(3)",
        "fail",
    ],
)
async def test_a_rule_that_raises_or_never_ends_denies(open_governance, body):
    governance = await open_governance(
        own=f"loops :- loops2.\nloops2 :- loops.\ncan_read_memory(_, Key) :- Key == trap, {body}."
    )
    memories = [record(), record(key="trap"), record(key="key-2", classification="shared")]
    assert not (await governance.can_read(OTHER, memories[1])).allowed
    assert await governance.can_read_many(OTHER, memories) == [False, False, True]
    assert (await governance.can_read(OWNER, memories[1])).allowed  # granted before the trap
    health = await governance.health()
    assert (health.details["unanswered"] > 0) is (body not in {"fail", "halt", "halt(3)"})


async def test_health_forgets_a_question_without_an_answer(open_governance, clock):
    governance = await open_governance(own="can_read_memory(_, trap) :- throw(oops).")
    assert not (await governance.can_read(OTHER, record(key="trap"))).allowed
    health = await governance.health()
    assert health.status is HealthStatus.DEGRADED
    assert "can_read_memory" in health.message
    clock.advance(minutes=6)
    assert (await governance.health()).status is HealthStatus.HEALTHY
    assert (await governance.health()).details["unanswered"] == 1


async def test_rules_cannot_write_to_the_terminal(open_governance, capfd):
    governance = await open_governance(
        own="""
        can_read_memory(_, _) :- write(printed), nl, print_message(error, format(printed, [])),
            format(user_error, "printed", []), flush_output, read(X), X == end_of_file.
        """
    )
    assert (await governance.can_read(OTHER, record())).allowed
    captured = capfd.readouterr()
    assert "printed" not in captured.out + captured.err


@pytest.mark.traces("REQ-010-046")
async def test_the_guides_example_does_what_it_says(open_governance):
    text = GUIDE.read_text("utf-8")
    example = text.split("```prolog\n", 1)[1].split("```", 1)[0]
    governance = await open_governance(own=example)
    plain = await open_governance()
    legal = record(key="legal-2026-03")
    for rules, deletes in ((plain, True), (governance, False)):
        assert (await rules.can_delete(OWNER, legal)).allowed is deletes
    reviewer = await open_governance(own=example, volks={**VOLKS, "QA:ONE": ("reviewer",)})
    assert (await reviewer.can_read("QA:ONE", record())).allowed
    assert not (await reviewer.can_read(OTHER, record())).allowed
    assert not (await governance.can_share(OWNER, OTHER, record())).allowed
    assert (await plain.can_share(OWNER, OTHER, record())).allowed
