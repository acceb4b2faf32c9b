"""Vectors: only those of the version that is there."""

from __future__ import annotations

import json

import numpy as np
import pytest
import redis

from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.hot.store import RedisHotStore
from tests.hot.making import SESSION, audit, later, store, vector

pytestmark = pytest.mark.servers


@pytest.mark.traces("REQ-010-027")
async def test_vectors_are_in_redis_as_json_and_come_back_exactly(
    hot: RedisHotStore, raw: redis.Redis
) -> None:
    await store(hot, key="index")
    given = vector(tokens=b"\x00\xff packed")
    await hot.attach_vectors({"index": given})
    text = raw.get("orchestrata:memory:embed:%69ndex")
    assert np.array_equal(np.array(json.loads(text), dtype=np.float32), given.vector)
    found = (await hot.vectors(["index", "unknown"]))["index"]
    assert np.array_equal(found.vector, given.vector)
    assert (found.version, found.model, found.tokens) == (1, "test", given.tokens)
    assert raw.zscore(f"orchestrata:memory:embed:index:{SESSION}", "index") == 0
    assert 86_390 < raw.ttl(keys.embedding("index")) <= 86_400


async def test_vectors_of_another_version_are_not_kept(hot: RedisHotStore) -> None:
    made = await store(hot, key="k1")
    await hot.attach_vectors({"k1": vector(2), "unknown": vector(1)})
    assert await hot.vectors(["k1", "unknown"]) == {}
    await hot.attach_vectors({"k1": vector(1)})
    await hot.replace(later(made), audit("update"), expected_version=1)
    assert await hot.vectors(["k1"]) == {}, "the old text's vector is gone"
    await hot.attach_vectors({"k1": vector(1)})
    assert await hot.vectors(["k1"]) == {}


async def test_token_vectors_and_another_model_replace(hot: RedisHotStore) -> None:
    await store(hot, key="k1")
    await hot.attach_vectors({"k1": vector()})
    await hot.attach_vectors({"k1": vector(tokens=b"t")})
    assert (await hot.vectors(["k1"]))["k1"].tokens == b"t"
    fresh = StoredVector(version=1, model="other", vector=vector(seed=1).vector)
    await hot.attach_vectors({"k1": fresh})
    found = (await hot.vectors(["k1"]))["k1"]
    assert (found.model, found.tokens) == ("other", None)
    assert np.array_equal(found.vector, fresh.vector)


async def test_matches_score_the_embedded_keys_only(hot: RedisHotStore, raw: redis.Redis) -> None:
    for key in ("k1", "k2"):
        await store(hot, key=key)
    await hot.attach_vectors({"k1": vector()})
    await hot.record_matches({SESSION: {"k1": 0.75, "k2": 0.5, "gone": 1.0}})
    await hot.record_matches({SESSION: {}})
    assert raw.zrange(keys.embedding_index(SESSION), 0, -1, withscores=True) == [("k1", 0.75)]
    await hot.attach_vectors({"k1": vector()})
    assert raw.zscore(keys.embedding_index(SESSION), "k1") == 0.75


async def test_many_vectors(hot: RedisHotStore) -> None:
    made = [await store(hot) for _ in range(70)]
    given = {each.key: vector(seed=n) for n, each in enumerate(made)}
    before = hot.round_trips
    await hot.attach_vectors(given)
    assert hot.round_trips - before == 9  # of eight
    found = await hot.vectors(list(given))
    assert all(np.array_equal(found[key].vector, given[key].vector) for key in given)


async def test_numbers_that_are_none_are_refused(hot: RedisHotStore) -> None:
    broken = StoredVector(version=1, model="m", vector=np.array([np.nan, 1], dtype=np.float32))
    with pytest.raises(MemoryEmbeddingError):
        await hot.attach_vectors({"k1": broken})
