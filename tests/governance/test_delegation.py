"""Delegation: what was shared with a grantor, over at most three hops, while it holds."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance import prolog as prolog_module
from orchestrata_memory.governance.machine import PrologMachine
from tests.governance.samples import (
    OTHER,
    OWNER,
    START,
    STRANGER,
    VOLKS,
    ChangingDirectory,
    delegation,
    record,
)

A, B, C, D, E = (f"ENG:{letter}" for letter in "ABCDE")


async def reads(governance, volk: str, **memory) -> bool:
    one = (await governance.can_read(volk, record(**memory))).allowed
    assert await governance.can_read_many(volk, [record(**memory)]) == [one]
    return one


@pytest.mark.traces("REQ-010-048")
async def test_one_to_three_hops_and_no_fourth(governance):
    await governance.set_delegations(
        [delegation(*pair) for pair in ((A, B), (B, C), (C, D), (D, E))]
    )
    expected = {A: True, B: True, C: True, D: True, E: False, OTHER: False}
    assert {volk: await reads(governance, volk, shared_with=(A,)) for volk in expected} == expected
    assert (await governance.readable(D)).grantors == (A, B, C)
    assert (await governance.readable(E)).grantors == (B, C, D)
    assert (await governance.readable(A)).grantors == ()


@pytest.mark.traces("REQ-010-048")
async def test_cycles_end(governance):
    pairs = ((A, B), (B, A), (B, C), (C, A), (C, C))
    await governance.set_delegations([delegation(*pair) for pair in pairs])
    assert await reads(governance, C, shared_with=(A,))
    assert await reads(governance, A, shared_with=(C,))
    assert not await reads(governance, D, shared_with=(A,))
    assert (await governance.readable(A)).grantors == (B, C)


@pytest.mark.traces("REQ-010-048")
async def test_expiry_counts_at_the_moment_of_asking(governance, clock):
    end = START + timedelta(hours=1)
    await governance.set_delegations([delegation(A, B, expires_at=end), delegation(B, C)])
    assert await reads(governance, C, shared_with=(A,))
    clock.advance(minutes=59, seconds=59.999)
    assert await reads(governance, B, shared_with=(A,))
    clock.advance(seconds=0.001)  # exactly at the end it is over
    assert not await reads(governance, B, shared_with=(A,))
    assert not await reads(governance, C, shared_with=(A,))
    assert (await governance.readable(C)).grantors == (B,)


@pytest.mark.traces("REQ-010-048")
async def test_a_revoked_link_breaks_the_chain(governance):
    await governance.set_delegations([delegation(A, B), delegation(B, C)])
    assert await reads(governance, C, shared_with=(A,))
    await governance.set_delegations([delegation(A, B), delegation(B, C, revoked=True, version=2)])
    assert await reads(governance, B, shared_with=(A,))
    assert not await reads(governance, C, shared_with=(A,))


async def test_of_one_pair_the_newest_version_counts(governance):
    revoked = delegation(A, B, revoked=True, version=2)
    await governance.set_delegations([revoked, delegation(A, B)])
    assert not await reads(governance, B, shared_with=(A,))
    await governance.set_delegations([delegation(A, B)])  # read before the revocation, comes late
    assert not await reads(governance, B, shared_with=(A,))
    await governance.set_delegations([delegation(A, B, version=3)])
    assert await reads(governance, B, shared_with=(A,))
    await governance.set_delegations([])
    assert not await reads(governance, B, shared_with=(A,))


@pytest.mark.traces("REQ-010-048")
@pytest.mark.traces("REQ-010-048")
async def test_a_cancelled_revocation_is_in_force_for_who_hands_over_the_same_list(governance):
    await governance.set_delegations([delegation(A, B)])
    revoked = [delegation(A, B, revoked=True, version=2)]
    gate = threading.Event()
    busy = asyncio.create_task(PrologMachine.shared().run(lambda _: gate.wait(10), timeout=10))
    await asyncio.sleep(0)
    first = asyncio.create_task(governance.set_delegations(revoked))
    await asyncio.sleep(0)
    second = asyncio.create_task(governance.set_delegations(revoked))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    gate.set()
    await asyncio.gather(busy, second)
    assert not await reads(governance, B, shared_with=(A,))


async def test_a_list_that_came_to_nothing_is_handed_over_again(governance, monkeypatch):
    await governance.set_delegations([delegation(A, B)])
    gate = threading.Event()
    busy = asyncio.create_task(PrologMachine.shared().run(lambda _: gate.wait(10), timeout=10))
    await asyncio.sleep(0)
    with monkeypatch.context() as impatient:
        impatient.setattr(prolog_module, "PATIENCE", 0.05)
        with pytest.raises(MemoryGovernanceError):
            await governance.set_delegations([])
    gate.set()
    await busy
    await governance.set_delegations([])
    assert not await reads(governance, B, shared_with=(A,))


async def test_what_the_delegator_owns_is_not_passed_on(governance):
    await governance.set_delegations([delegation(OWNER, B)])
    assert not await reads(governance, B)
    assert not await reads(governance, B, shared_with=(OWNER,))  # shared with itself is still own
    assert await reads(governance, B, owner=OTHER, shared_with=(OWNER,))


async def test_a_link_counts_between_registered_volks_only(open_governance):
    directory = ChangingDirectory({**VOLKS, STRANGER: ()})
    governance = await open_governance(directory=directory)
    await governance.set_delegations([delegation(A, STRANGER), delegation(STRANGER, C)])
    assert await reads(governance, C, shared_with=(A,))
    directory.change(STRANGER, None)
    assert not await reads(governance, C, shared_with=(A,))
    assert not await reads(governance, C, shared_with=(STRANGER,))


async def test_delegation_gives_nothing_but_reading(governance):
    await governance.set_delegations([delegation(A, B)])
    memory = record(shared_with=(A,))
    assert not (await governance.can_update(B, memory)).allowed
    assert not (await governance.can_delete(B, memory)).allowed
    assert not (await governance.can_share(B, C, memory)).allowed


links = st.sets(st.tuples(st.sampled_from((A, B, C, D, E)), st.sampled_from((A, B, C, D, E))))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(links, st.sampled_from((A, B, C, D, E)))
async def test_any_web_of_links_reaches_what_paths_of_three_reach(governance, pairs, reader):
    await governance.set_delegations([])
    await governance.set_delegations([delegation(*pair) for pair in pairs])
    frontier, reached = {reader}, {reader}
    for _ in range(3):
        frontier = {start for start, end in pairs if end in frontier}
        reached |= frontier
    grantors = (await governance.readable(reader)).grantors
    assert grantors == tuple(sorted(reached - {reader}))
    memories = [record(key=volk, shared_with=(volk,)) for volk in (A, B, C, D, E)]
    answers = await governance.can_read_many(reader, memories)
    assert answers == [volk in reached for volk in (A, B, C, D, E)]
