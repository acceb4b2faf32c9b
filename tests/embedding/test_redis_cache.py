"""The shared cache on a real Redis."""

from __future__ import annotations

import numpy as np
import pytest
from redis.asyncio import Redis

from orchestrata_memory.config.settings import EmbeddingSettings, RedisSettings
from orchestrata_memory.embedding import token_vectors
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.hashing import HashingModel
from orchestrata_memory.embedding.redis_cache import RedisVectorCache
from orchestrata_memory.embedding.service import EmbeddingService
from orchestrata_memory.hot import keys
from orchestrata_memory.hot.connection import Connection
from orchestrata_memory.models.hashing import content_hash
from tests.embedding.models import DIMENSION, ScriptedModel

pytestmark = pytest.mark.servers

MODEL = HashingModel(DIMENSION)


@pytest.fixture
async def client(clean_redis):
    client = Redis.from_url(clean_redis.url)
    yield client
    await client.aclose()


@pytest.fixture
def cache_of(clean_redis):
    def make(**arguments: int) -> RedisVectorCache:
        return RedisVectorCache(Connection(RedisSettings(), clean_redis.url), **arguments)

    return make


@pytest.mark.traces("REQ-010-037")
async def test_what_is_put_comes_back_as_it_will_be_stored(cache_of):
    cache = cache_of()
    [encoding] = MODEL.encode(["The café in Zürich, 日本 and the rest."], with_tokens=True)

    await cache.put_many("model", {"aa": encoding})
    [found, missing] = await cache.get_many("model", ["aa", "bb"])

    assert missing is None
    assert np.array_equal(found.vector, encoding.vector)
    assert token_vectors.pack(found) == token_vectors.pack(encoding)


async def test_no_text_is_kept_and_a_text_can_be_dropped(client, cache_of):
    cache = cache_of()
    [encoding] = MODEL.encode(["canary"], with_tokens=True)
    await cache.put_many("model", {"ff": encoding, "gg": encoding})

    assert b"canary" not in await client.get(keys.embedding_cache("model", "ff"))
    await cache.drop_many("model", ["ff"])

    assert [found is None for found in await cache.get_many("model", ["ff", "gg"])] == [True, False]


async def test_models_do_not_meet_and_values_expire(client, cache_of):
    cache = cache_of(ttl_seconds=77)
    [encoding] = MODEL.encode(["text"], with_tokens=False)

    await cache.put_many("a:b", {"cc": encoding})

    assert await cache.get_many("a", ["cc"]) == [None]
    assert 70 < await client.ttl(keys.embedding_cache("a:b", "cc")) <= 77
    [found] = await cache.get_many("a:b", ["cc"])
    assert found.tokens is None


@pytest.mark.parametrize("value", [b"", b"junk", b"\x01\x00\x00\x00\xffxx"])
async def test_damaged_values_count_as_unknown(client, cache_of, value):
    await client.set(keys.embedding_cache("model", "dd"), value)

    assert await cache_of().get_many("model", ["dd"]) == [None]


def test_a_name_of_the_cache_is_no_entry():
    assert keys.parse(keys.embedding_cache("tags", "ee")).kind is keys.NameKind.OTHER


@pytest.mark.traces("REQ-010-037")
async def test_two_processes_embed_a_text_once(client, cache_of):
    settings = EmbeddingSettings(dimension=DIMENSION)
    models = [ScriptedModel(), ScriptedModel()]
    results: list[Encoding | None] = []
    for model in models:
        service = EmbeddingService(settings, document_model=model, cache=cache_of())
        await service.open()
        results += await service.embed(["said once"])
        await service.close()

    assert [model.texts for model in models] == [["said once"], []]
    assert np.array_equal(results[0].vector, results[1].vector)
    assert await client.exists(keys.embedding_cache("scripted", content_hash("said once")))


async def test_redis_away_fails_no_embedding():
    service = EmbeddingService(
        EmbeddingSettings(dimension=DIMENSION),
        document_model=ScriptedModel(),
        cache=RedisVectorCache.from_settings(RedisSettings(), url="redis://127.0.0.1:1/0"),
    )
    await service.open()
    try:
        assert (await service.embed(["text"]))[0] is not None
        assert (await service.health()).details["shared_cache_failures"] > 0
    finally:
        await service.close()


def test_without_a_server_there_is_no_cache():
    assert RedisVectorCache.from_settings(RedisSettings()) is None
