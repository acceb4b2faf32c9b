"""The census is exact or not there."""

from __future__ import annotations

import pytest

from orchestrata_memory.hot.base import Withdrawal
from orchestrata_memory.hot.store import RedisHotStore
from tests.hot.making import OWNER, audit, drain, later, record, store, vector

pytestmark = pytest.mark.servers

NAMES = ["all", "project:project-1", "session:session-1"]


async def test_unknown_until_seeded(hot: RedisHotStore) -> None:
    assert await hot.census(NAMES) == dict.fromkeys(NAMES)
    await hot.seed_census({"session:session-1": 5})
    assert (await hot.census(NAMES))["session:session-1"] == 5
    await hot.seed_census({"session:session-1": 9})
    assert (await hot.census(NAMES))["session:session-1"] == 5


async def test_writes_keep_it(hot: RedisHotStore) -> None:
    await hot.seed_census(dict.fromkeys(NAMES, 10))
    made = await store(hot, key="k1")
    again = audit()
    await hot.insert(record("k2"), again)
    await store(hot, key="k3", session_id="other", project_id=None)
    await hot.replace(later(made), audit("update"), expected_version=1)
    await hot.promote("other", record("cold"), vector())
    assert await hot.census(NAMES) == dict(zip(NAMES, (13, 12, 12), strict=True))
    await hot.tombstone(later(made), audit("delete"))
    await drain(hot)
    assert await hot.census(NAMES) == dict(zip(NAMES, (12, 11, 11), strict=True))


async def test_withdrawn_summaries_count(hot: RedisHotStore) -> None:
    await hot.seed_census(dict.fromkeys(NAMES, 10))
    source = await store(hot, key="source")
    await store(hot, key="sum", sources=("source",), source_versions=(1,))
    cold = Withdrawal(
        key="c", version=1, volk_id=OWNER, session_id="session-1", project_id="project-1"
    )
    await hot.tombstone(source, audit("delete"), withdrawals=[cold])
    assert await hot.census(NAMES) == dict.fromkeys(NAMES, 9)


async def test_from_nothing_everything_is_counted(hot: RedisHotStore) -> None:
    await hot.census(["all"])
    await hot.seed_census({"all": 0})
    await store(hot)
    await store(hot, session_id="other")
    counts = await hot.census([*NAMES, "session:other", "session:never"])
    assert list(counts.values()) == [2, 2, 1, 1, 0]


async def test_not_seeded_while_a_write_is_on_its_way(hot: RedisHotStore) -> None:
    """Whether cold's count holds the entry already is then unknown."""
    await store(hot)
    assert (await hot.census(["all"]))["all"] is None
    await hot.seed_census({"all": 0})
    assert (await hot.census(["all"]))["all"] is None
    await drain(hot)
    assert (await hot.census(["all"]))["all"] is None
    await hot.seed_census({"all": 1})
    assert (await hot.census(["all"]))["all"] == 1


async def test_not_seeded_across_a_write(hot: RedisHotStore, other: RedisHotStore) -> None:
    await hot.census(["all", "session:x"])
    await other.insert(record(), audit())
    await drain(other)
    await hot.seed_census({"all": 0, "session:x": 4})
    counts = await hot.census(["all", "session:x"])
    assert counts == {"all": None, "session:x": 4}
