"""Ids are atoms whatever they hold: nothing of them is ever read as Prolog."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrata_memory.governance.machine import DRIVER, PrologMachine
from orchestrata_memory.models import MemoryClassification
from tests.governance.samples import OTHER, OWNER, ChangingDirectory, delegation, record

HOSTILE = [
    "'), halt.",
    "') ; true ; ('",
    "x', 'y",
    "_",
    "Volk",
    "A",
    "[]",
    "{}",
    "!",
    "a:-b",
    "\\x41\\",
    "\\",
    "'",
    '"',
    "`",
    "''",
    "% comment",
    "/* comment",
    "0'a",
    "42",
    "0.0",
    "1.0Inf",
    "memory(k, o, private, [])",
    "unknown",
    "none",
    "never",
    "%s%n~w~a~q",
    "键:值",
    "👩‍👩‍👧\U0010ffff",
    "\u202eevil",
    "é",
    "e\u0301",
    " ",
    "x" * 512,
    "é" * 256,
    "user:halt",
    "ENG:OWNER ",
    "eng:owner",
    "private",
    "true",
]
ids = st.text(
    st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60
) | st.sampled_from(HOSTILE)


@pytest.mark.traces("REQ-010-046")
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_is_itself_and_nobody_else(open_governance, name):
    governance = await open_governance(volks={OWNER: (), OTHER: (), name: ("team_lead",)})
    mine = record(key=name, owner=name, shared_with=(OTHER,))
    assert (await governance.can_read(name, mine)).allowed
    assert (await governance.can_delete(name, mine)).allowed
    assert (await governance.can_share(name, OWNER, mine)).allowed
    assert (await governance.can_store(name, MemoryClassification.SHARED)).allowed
    assert not (await governance.can_read(OWNER, mine)).allowed
    assert not (await governance.can_read(name, record())).allowed
    assert not (await governance.can_read(name, record(key=name))).allowed
    assert await governance.can_read_many(name, [mine, record()]) == [True, False]
    await governance.set_delegations([delegation(OTHER, name)])
    assert (await governance.readable(name)).grantors == (OTHER,)
    await governance.set_delegations([delegation(name, OWNER)])
    assert (await governance.readable(OWNER)).grantors == (name,)


@pytest.mark.traces("REQ-010-046")
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_that_is_not_registered_gets_nothing(governance, name):
    memory = record(key=name, owner=name, classification="system", shared_with=(name,))
    assert not await governance.is_registered(name)
    assert not (await governance.can_store(name, MemoryClassification.PRIVATE)).allowed
    assert not (await governance.can_read(name, memory)).allowed
    assert not (await governance.can_share(OWNER, name, record())).allowed
    assert not (await governance.can_delegate(OWNER, name)).allowed
    assert not (await governance.can_audit(name, None, name)).allowed
    assert not (await governance.can_migrate(name, name)).allowed
    assert (await governance.readable(name)).grantors == ()


@pytest.mark.traces("REQ-010-045", "REQ-010-046")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.tuples(ids, ids, ids), shared=st.lists(ids, max_size=3), known=st.booleans())
async def test_any_ids_give_the_same_answer_as_comparing_text(
    open_governance, names, shared, known
):
    reader, owner, key = names
    volks = {owner: (), **({reader: ()} if known else {})}
    governance = await open_governance(directory=ChangingDirectory(volks), volks={})
    memory = record(key=key, owner=owner, shared_with=tuple(shared))
    registered = known or reader == owner
    expected = registered and (reader == owner or reader in shared)
    assert (await governance.can_read(reader, memory)).allowed is expected
    assert await governance.can_read_many(reader, [memory] * 2) == [expected] * 2
    assert (await governance.can_update(reader, memory)).allowed is (reader == owner)
    await governance.close()


async def test_names_differ_by_every_code_point(open_governance):
    governance = await open_governance(volks={"é": ()})
    assert await governance.is_registered("é")
    assert not await governance.is_registered("e\u0301")


async def test_atoms_of_past_questions_are_collected(governance):
    def atoms(prolog) -> int:
        prolog.run("system", "garbage_collect_atoms")
        return int(prolog.run("system", "statistics", "atoms", outputs=1)[0])

    machine = PrologMachine.shared()
    before = await machine.run(atoms, timeout=30)
    for batch in range(40):
        records = [record(key=f"gone-{batch}-{number}") for number in range(500)]
        assert await governance.can_read_many(OWNER, records) == [True] * 500
    after = await machine.run(atoms, timeout=30)
    assert after - before < 2_000  # of 20,000 distinct keys


async def test_nothing_of_a_question_stays_behind(governance):
    assert (await governance.can_read(OWNER, record())).allowed

    def left(prolog) -> list[str]:
        return prolog.run(DRIVER, "asked_memory", outputs=1)

    with pytest.raises(Exception, match="orchestrata_memory_asked"):
        await PrologMachine.shared().run(left, timeout=5)


CLEAN_PROCESS = """
import asyncio, locale, sys
from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.governance.prolog import PrologGovernance

class Directory:
    async def volks(self):
        return {"A": frozenset()}

    async def revision(self):
        return 1

async def main():
    governance = PrologGovernance(GovernanceSettings(), Directory())
    await governance.open()
    print(await governance.is_registered("A"), await governance.is_registered("'), halt."))
    await governance.close()

before = locale.setlocale(locale.LC_ALL), sys.exit
asyncio.run(main())
assert (locale.setlocale(locale.LC_ALL), sys.exit) == before
sys.exit(5)
"""


def test_a_process_with_prolog_ends_as_it_says_and_quietly():
    done = subprocess.run(
        [sys.executable, "-c", CLEAN_PROCESS],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True False\n", "", 5)
