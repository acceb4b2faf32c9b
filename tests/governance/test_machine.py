"""One Prolog, one thread, many governances and many questions at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance import prolog as prolog_module
from orchestrata_memory.governance.machine import DRIVER, PrologMachine
from orchestrata_memory.governance.terms import Compound
from orchestrata_memory.interfaces import HealthStatus
from orchestrata_memory.models import MemoryClassification
from tests.governance.samples import OTHER, OWNER, VOLKS, ChangingDirectory, delegation, record


@pytest.mark.traces("REQ-010-046")
async def test_two_governances_do_not_mix(open_governance):
    first = await open_governance(own="can_read_memory(_, _).")
    second = await open_governance(volks={OTHER: ("team_lead",)})
    await first.set_delegations([delegation("ENG:A", "ENG:B")])
    assert (await first.can_read("ENG:B", record())).allowed
    assert not (await second.can_read(OTHER, record())).allowed
    assert not await second.is_registered(OWNER)
    assert await first.is_registered(OWNER)
    assert (await second.can_store(OTHER, MemoryClassification.SHARED)).allowed
    assert not (await first.can_store(OTHER, MemoryClassification.SHARED)).allowed
    await first.close()
    assert (await second.can_store(OTHER, MemoryClassification.SHARED)).allowed
    with pytest.raises(MemoryGovernanceError):
        await first.can_read(OWNER, record())


async def test_predicates_of_another_user_of_prolog_do_not_leak_in(open_governance):
    def assert_in_user(prolog) -> None:
        prolog.run("user", "load_files", "/dev/null", [])
        prolog.run("user", "assertz", Compound("role_of_kernel", (OTHER,)))

    await PrologMachine.shared().run(assert_in_user, timeout=5)
    governance = await open_governance(own="can_delete_memory(V, _) :- role_of_kernel(V).")
    assert not (await governance.can_delete(OTHER, record())).allowed


async def test_a_hundred_questions_at_once_keep_their_answers(governance):
    await governance.set_delegations([delegation("ENG:A", OTHER)])

    async def ask(number: int) -> bool:
        caller = OWNER if number % 2 else OTHER
        shared = ("ENG:A",) if number % 3 == 0 else ()
        memory = record(key=f"key-{number}", shared_with=shared)
        expected = caller == OWNER or bool(shared)
        one = (await governance.can_read(caller, memory)).allowed
        many = await governance.can_read_many(caller, [memory] * (number % 7))
        return one is expected and many == [expected] * (number % 7)

    assert all(await asyncio.gather(*(ask(number) for number in range(100))))


async def test_prolog_stays_on_its_thread(governance):
    machine = PrologMachine.shared()
    names = await asyncio.gather(
        *(machine.run(lambda _: threading.current_thread().name, timeout=5) for _ in range(20))
    )
    assert len(set(names)) == 1
    assert names[0] != threading.current_thread().name


def test_two_event_loops_one_after_another(governance_settings):
    async def ask() -> bool:
        governance = prolog_module.PrologGovernance(*governance_settings)
        await governance.open()
        try:
            return (await governance.can_read(OWNER, record())).allowed
        finally:
            await governance.close()

    results = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: results.append(asyncio.run(ask())))
        thread.start()
        thread.join()
    assert results == [True, True]


async def test_an_answer_that_does_not_come_in_time_is_no(open_governance, monkeypatch):
    governance = await open_governance(own="can_read_memory(_, trap) :- sleep(1).")
    monkeypatch.setattr(prolog_module, "PATIENCE", 0.2)
    decision = await governance.can_read(OTHER, record(key="trap"))
    assert not decision.allowed
    assert "in time" in decision.reason
    assert await governance.can_read_many(OTHER, [record(key="trap")]) == [False]
    monkeypatch.undo()
    assert (await governance.can_read(OWNER, record())).allowed
    assert (await governance.health()).status is HealthStatus.DEGRADED


async def test_the_event_loop_runs_on_while_a_rule_computes(open_governance):
    governance = await open_governance(
        own="can_read_memory(_, trap) :- spin(300000).\nspin(0) :- !, fail.\n"
        "spin(N) :- M is N - 1, spin(M)."
    )
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticker = asyncio.create_task(tick())
    try:
        for _ in range(5):
            assert not (await governance.can_read(OTHER, record(key="trap"))).allowed
    finally:
        ticker.cancel()
    assert ticks > 5


async def test_a_cancelled_question_does_not_disturb_the_next(governance):
    task = asyncio.create_task(governance.can_read_many(OWNER, [record()] * 5000))
    await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await governance.can_read(OWNER, record())).allowed


async def test_failures_of_the_driver_are_errors_not_permissions(governance):
    with pytest.raises(MemoryGovernanceError, match="no answer"):
        await PrologMachine.shared().run(lambda p: p.run("system", "fail"), timeout=5)
    with pytest.raises(MemoryGovernanceError, match="no_such_thing"):
        await PrologMachine.shared().run(lambda p: p.run(DRIVER, "no_such_thing"), timeout=5)


async def test_opening_and_closing_twice(open_governance):
    governance = await open_governance()
    await governance.open()
    assert (await governance.health()).status is HealthStatus.HEALTHY
    await governance.close()
    await governance.close()
    assert (await governance.health()).status is HealthStatus.STOPPED
    await governance.open()
    assert (await governance.can_read(OWNER, record())).allowed


WITHOUT_PROLOG = """
import asyncio, sys
from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance.prolog import PrologGovernance

async def main():
    governance = PrologGovernance(GovernanceSettings(), None)
    for _ in range(2):
        try:
            await governance.open()
        except MemoryGovernanceError as error:
            print(error)

asyncio.run(main())
"""


@pytest.mark.traces("REQ-010-046")
def test_a_missing_prolog_is_said_with_the_way_out():
    # What pyswip looks for is pointed at nothing: the same as a machine without SWI-Prolog.
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PROLOG],
        env={"LIBSWIPL_PATH": "/nowhere/libswipl.so", "SWI_HOME_DIR": "/nowhere", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.count("apt-get install swi-prolog-nox") == 2
    assert done.returncode == 0


@pytest.fixture
def governance_settings():
    return GovernanceSettings(), ChangingDirectory(VOLKS)
