"""Hostile ids and contents through Redis keys and Lua: nothing is executed, nothing meets."""

from __future__ import annotations

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrata_memory.hot import keys
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.models import KeyState, MemoryRecord
from tests.hot.making import audit, drain, later, record, vector
from tests.hot.test_keys import SEGMENTS

pytestmark = pytest.mark.servers

_LUA = st.sampled_from(
    [
        "\"] = 1; redis.call('FLUSHALL') --",
        "']] redis.call('FLUSHALL') --[[",
        "%s%d%1%%",
        '{"key":"x","session":null}',
        "\\u0000\\",
        "null",
        "-1",
        "1e400",
        "\u202eright to left",
        "e\u0301 \u00e9",
        "\U0001f469\u200d\U0001f4bb",
    ]
)
_NAME = SEGMENTS | _LUA
_CONTENT = _LUA | st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=200)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    made=st.builds(
        record,
        key=_NAME,
        content=_CONTENT,
        session_id=_NAME,
        volk_id=_NAME,
        project_id=st.none() | _NAME,
        tags=st.lists(_NAME, max_size=3, unique=True).map(tuple),
        metadata=st.dictionaries(_CONTENT, _CONTENT, max_size=2),
        shared_with=st.lists(_NAME, max_size=2).map(tuple),
    ),
    reader=_NAME,
)
async def test_every_step_works_on_any_text(
    hot: RedisHotStore, raw: redis.Redis, made: MemoryRecord, reader: str
) -> None:
    raw.flushall()
    key, session = made.key, made.session_id
    await hot.claim(key, "token")
    made = await hot.insert(made, audit(key=key), claim_token="token")
    assert (await hot.read([key]))[key].record == made
    assert raw.exists(keys.entry(session, made.volk_id, key)) == 1
    assert all(raw.smembers(keys.tagged(session, made.volk_id, tag)) == {key} for tag in made.tags)
    await hot.attach_vectors({key: vector()})
    assert set(await hot.vectors([key])) == {key}
    summary = await hot.insert(
        record(f"of {key}", session_id=session, sources=(key,), source_versions=(1,)), audit()
    )
    changed = later(made, tags=made.tags[:1], content=made.content[::-1])
    await hot.replace(changed, audit("update"), expected_version=1)
    states = await hot.read([key, summary.key])
    assert states[key].record == changed
    assert states[summary.key].state is KeyState.DELETED
    taken = await drain(hot)
    assert [each.record for each in taken if each.record] == [made, summary, changed]
    assert await hot.move_out(key, 2)
    if not await hot.is_closed(reader):
        assert await hot.promote(reader, changed, vector(2))
    assert (await hot.read([key]))[key].record == changed
    await hot.tombstone(changed, audit("delete"))
    assert [record.operation for record in await hot.audit_of(key)] == ["store"]
    await drain(hot)
    await hot.sweep()
    left = {keys.parse(name).kind for name in raw.keys("*")}
    assert left == {keys.NameKind.POINTER, keys.NameKind.POSITIONS, keys.NameKind.OTHER}
