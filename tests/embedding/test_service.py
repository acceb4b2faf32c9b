"""The service around the models: batches, lines, caches, failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest

from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.embedding.agreement import PROBES
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.cache import EncodingCache
from orchestrata_memory.embedding.lane import DOCUMENTS_PER_CALL
from orchestrata_memory.embedding.service import WAITING_TEXTS, EmbeddingService
from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryEmbeddingError,
    MemoryLifecycleError,
)
from orchestrata_memory.interfaces import HealthStatus
from orchestrata_memory.models.hashing import content_hash
from tests.embedding.models import DIMENSION, ScriptedModel


def settings(**changes: object) -> EmbeddingSettings:
    return EmbeddingSettings.model_validate({"dimension": DIMENSION, **changes})


@asynccontextmanager
async def serving(
    model: ScriptedModel, query_model: ScriptedModel | None = None, **changes: object
) -> AsyncIterator[EmbeddingService]:
    cache = changes.pop("cache", None)
    service = EmbeddingService(
        settings(**changes), document_model=model, query_model=query_model, cache=cache
    )
    await service.open()
    try:
        yield service
    finally:
        model.go.set()
        if query_model is not None:
            query_model.go.set()
        await service.close()


async def until(condition, seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - conditions of code that signals nothing
            await asyncio.sleep(0.005)


class DictCache:
    """A shared cache in a dictionary, which can be told to fail or to hang."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Encoding] = {}
        self.error: Exception | None = None
        self.gets = 0

    async def get_many(self, model: str, hashes: Sequence[str]) -> list[Encoding | None]:
        self.gets += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [self.kept.get((model, digest)) for digest in hashes]

    async def put_many(self, model: str, encodings: Mapping[str, Encoding]) -> None:
        if self.error is not None:
            raise self.error
        self.kept.update({(model, digest): value for digest, value in encodings.items()})

    async def drop_many(self, model: str, hashes: Sequence[str]) -> None:
        for digest in hashes:
            self.kept.pop((model, digest), None)

    async def close(self) -> None:
        pass


@pytest.mark.traces("REQ-010-008")
async def test_documents_come_back_in_order():
    texts = [f"text {n} {'more ' * (n % 7)}" for n in range(100)]
    model = ScriptedModel()
    async with serving(model) as service:
        encodings = await service.embed(texts)

    expected = ScriptedModel().encode(texts, with_tokens=False)
    for got, wanted in zip(encodings, expected, strict=True):
        assert np.array_equal(got.vector, wanted.vector)
    assert max(map(len, model.calls)) <= DOCUMENTS_PER_CALL


@pytest.mark.traces("REQ-010-037")
async def test_the_second_embedding_of_a_text_calls_no_model():
    async with serving(ScriptedModel()) as service:
        [first] = await service.embed(["the same text"])
        await service.embed_query("a question")
        calls = service.model_calls

        [second] = await service.embed(["the same text"])
        await service.embed_query("a question")

        assert service.model_calls == calls == 2
        assert second is first


async def test_the_cache_can_be_switched_off():
    async with serving(ScriptedModel(), cache_embeddings=False) as service:
        await service.embed(["text"])
        await service.embed(["text"])

        assert service.model_calls == 2


@pytest.mark.traces("REQ-010-037")
async def test_the_cache_is_bounded():
    model = ScriptedModel()
    async with serving(model, cache_size=10) as service:
        await service.embed([f"text {n}" for n in range(50)])

        health = await service.health()
        assert health.details["cached_documents"] == 10


def test_the_cache_is_bounded_in_bytes_and_forgets_the_least_used():
    def encoding(size: int) -> Encoding:
        return Encoding(vector=np.ones(size, dtype=np.float32))

    cache = EncodingCache(max_entries=100, max_bytes=20_000)
    cache.put("a", encoding(1000))
    cache.put("b", encoding(1000))
    assert cache.get("a") is not None
    cache.put("huge", encoding(100_000))
    for name in "cde":
        cache.put(name, encoding(1000))

    assert cache.get("huge") is None
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.size_bytes <= 20_000


async def test_the_same_text_twice_in_a_batch_is_encoded_once():
    model = ScriptedModel()
    async with serving(model) as service:
        first, second, third = await service.embed(["x", "y", "x"])

    assert first is third
    assert first is not second
    assert sorted(model.texts) == ["x", "y"]


async def test_concurrent_embeds_of_a_text_share_one_call():
    model = ScriptedModel()
    async with serving(model) as service:
        answers = await asyncio.gather(*(service.embed(["shared"]) for _ in range(20)))

    assert model.texts == ["shared"]
    assert all(answer[0] is answers[0][0] for answer in answers)


async def test_concurrent_queries_share_a_call():
    model = ScriptedModel()
    async with serving(model) as service:
        await service.embed_query("warm")
        model.calls.clear()
        model.go.clear()
        held = asyncio.create_task(service.embed_query("holds the model"))
        await until(lambda: len(model.calls) == 1)
        queries = [asyncio.create_task(service.embed_query(f"q{n % 10}")) for n in range(20)]
        await asyncio.sleep(0.02)
        model.go.set()
        await asyncio.gather(held, *queries)

    assert sorted(model.calls[1]) == sorted({f"q{n}" for n in range(10)})
    assert len(model.calls) == 2


async def test_a_query_goes_ahead_of_waiting_documents():
    model = ScriptedModel()
    async with serving(model) as service:
        await service.embed_query("warm")
        model.calls.clear()
        model.go.clear()
        documents = asyncio.create_task(service.embed([f"d{n}" for n in range(64)]))
        await until(lambda: len(model.calls) == 1)
        query = asyncio.create_task(service.embed_query("urgent"))
        await asyncio.sleep(0.02)
        model.go.set()
        await query
        await documents

    assert model.calls[1] == ["urgent"]


@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
async def test_a_blank_text_never_reaches_the_model(blank):
    model = ScriptedModel()
    async with serving(model) as service:
        before, nothing, after = await service.embed(["a", blank, "b"])
        with pytest.raises(MemoryEmbeddingError):
            await service.embed_query(blank)

    assert nothing is None
    assert before is not None
    assert after is not None
    assert blank not in model.texts


async def test_text_reaches_the_model_as_it_is():
    model = ScriptedModel()
    texts = ["naïve café", "日本語のテキスト", "שלום", "👨‍👩‍👧‍👦", "e\u0301"]
    async with serving(model) as service:
        await service.embed(texts)

    assert sorted(model.texts) == sorted(texts)


async def test_only_the_bad_text_of_a_batch_fails():
    model = ScriptedModel()
    model.bad_texts = {"t11", "t37"}
    texts = [f"t{n}" for n in range(50)]
    async with serving(model) as service:
        encodings = await service.embed(texts)

    missing = {text for text, got in zip(texts, encodings, strict=True) if got is None}
    assert missing == {"t11", "t37"}


@pytest.mark.traces("REQ-010-038")
@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(DIMENSION, dtype=np.float32),
        np.ones(DIMENSION + 1, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
    ],
    ids=["zeros", "another dimension", "no numbers"],
)
async def test_a_vector_that_cannot_be_stored_fails_its_text_alone(vector):
    model = ScriptedModel()
    model.replaced["odd"] = vector
    async with serving(model) as service:
        good, odd = await service.embed(["good", "odd"])
        with pytest.raises(MemoryEmbeddingError):
            await service.embed_query("odd")

    assert good is not None
    assert odd is None


async def test_a_model_that_does_not_work_is_an_error_and_may_recover():
    model = ScriptedModel()
    async with serving(model) as service:
        model.broken = RuntimeError("out of memory")
        with pytest.raises(MemoryEmbeddingError, match="does not work"):
            await service.embed(["a", "b", "c"])
        with pytest.raises(MemoryEmbeddingError):
            await service.embed_query("q")
        model.broken = None

        assert await service.embed(["a"]) != [None]


@pytest.mark.traces("REQ-010-038")
async def test_a_model_of_another_dimension_is_refused_with_the_way_out():
    async with serving(ScriptedModel(dimension=48)) as service:
        with pytest.raises(MemoryConfigurationError, match=r"set embedding\.dimension to 48"):
            await service.embed(["text"])

        health = await service.health()
        assert health.status is HealthStatus.UNHEALTHY
        assert "48" in health.message


async def test_a_model_that_cannot_be_loaded_is_tried_again():
    model = ScriptedModel()
    model.load_error = MemoryConfigurationError("not installed")
    async with serving(model) as service:
        with pytest.raises(MemoryConfigurationError):
            await service.embed(["text"])
        model.load_error = None

        assert (await service.embed(["text"]))[0] is not None
        assert (await service.health()).status is HealthStatus.HEALTHY


async def test_a_caller_who_leaves_takes_nothing_from_the_others():
    model = ScriptedModel()
    async with serving(model) as service:
        model.go.clear()
        leaver = asyncio.create_task(service.embed(["shared", "own"]))
        stayer = asyncio.create_task(service.embed(["shared"]))
        asker = asyncio.create_task(service.embed_query("question"))
        stays = asyncio.create_task(service.embed_query("question"))
        await until(lambda: bool(model.calls))
        leaver.cancel()
        asker.cancel()
        await asyncio.sleep(0.02)
        model.go.set()

        assert (await stayer)[0] is not None
        assert (await stays).vector.shape == (DIMENSION,)
        for gone in (leaver, asker):
            with pytest.raises(asyncio.CancelledError):
                await gone
        assert (await service.embed(["own"]))[0] is not None


async def test_the_event_loop_keeps_running_while_the_model_computes():
    model = ScriptedModel()
    async with serving(model) as service:
        model.go.clear()
        task = asyncio.create_task(service.embed(["text"]))
        await until(lambda: bool(model.calls))
        model.go.set()
        await task

    assert threading.get_ident() not in model.threads
    assert len(model.threads) == 1


async def test_waiting_texts_are_bounded():
    model = ScriptedModel()
    async with serving(model) as service:
        model.go.clear()
        callers = [
            asyncio.create_task(service.embed([f"{n}-{m}" for m in range(32)]))
            for n in range(2 * WAITING_TEXTS // 32)
        ]
        await until(lambda: bool(model.calls))
        await asyncio.sleep(0.05)
        waiting = (await service.health()).details["waiting_texts"]
        model.go.set()
        answers = await asyncio.gather(*callers)

    assert WAITING_TEXTS - 64 <= waiting <= WAITING_TEXTS + 32
    assert all(None not in answer for answer in answers)


async def test_closing_finishes_what_was_accepted_and_refuses_the_rest():
    model = ScriptedModel()
    service = EmbeddingService(settings(), document_model=model)
    with pytest.raises(MemoryLifecycleError):
        await service.embed(["too early"])
    await service.open()
    model.go.clear()
    accepted = asyncio.create_task(service.embed(["a", "b"]))
    await until(lambda: bool(model.calls))
    closing = asyncio.create_task(service.close())
    await asyncio.sleep(0.02)
    with pytest.raises(MemoryLifecycleError):
        await service.embed(["too late"])
    model.go.set()
    await closing
    await service.close()

    assert None not in await accepted
    assert (await service.health()).status is HealthStatus.STOPPED
    assert not [t for t in threading.enumerate() if t.name.startswith("embedding-scripted")]


def test_it_can_be_opened_again_even_on_another_event_loop():
    model = ScriptedModel()
    service = EmbeddingService(settings(), document_model=model)

    async def embed(text: str) -> list[Encoding | None]:
        await service.open()
        try:
            return await service.embed([text])
        finally:
            await service.close()

    assert None not in asyncio.run(embed("one"))
    assert None not in asyncio.run(embed("two"))
    assert model.texts == ["one", "two"]


# Two backends


async def test_queries_need_the_document_model_neither_loaded_nor_idle():
    documents, queries = ScriptedModel(), ScriptedModel(backend="light")
    async with serving(documents, queries) as service:
        await service.embed_query("first")
        assert documents.loads == 0

        documents.go.clear()
        task = asyncio.create_task(service.embed(["slow"]))
        await until(lambda: bool(documents.calls))
        await service.embed_query("not held up")
        documents.go.set()
        await task
        assert service.query_backend == "light"


async def test_backends_that_agree_both_serve():
    documents, queries = ScriptedModel(), ScriptedModel(backend="light")
    queries.noise = 0.01
    async with serving(documents, queries) as service:
        await service.embed(["text"])
        await until(lambda: service._agreement is not None)

        assert service.query_backend == "light"
        assert (await service.health()).status is HealthStatus.HEALTHY


async def test_queries_move_to_the_document_model_when_the_backends_disagree():
    documents, queries = ScriptedModel(), ScriptedModel(backend="light")
    queries.noise = 0.2
    async with serving(documents, queries) as service:
        before = await service.embed_query("question")
        await service.embed(["text"])
        await until(lambda: service.query_backend == "scripted")

        after = await service.embed_query("question")
        health = await service.health()

    assert not np.allclose(before.vector, after.vector)
    assert health.status is HealthStatus.DEGRADED
    assert "0.999 is required" in health.message
    assert set(PROBES) <= set(queries.texts)


async def test_a_query_backend_that_fails_is_replaced_at_once():
    documents, queries = ScriptedModel(), ScriptedModel(backend="light")
    async with serving(documents, queries) as service:
        await service.embed_query("works")
        queries.broken = RuntimeError("gone")

        encoding = await service.embed_query("question")

        assert encoding.vector.shape == (DIMENSION,)
        assert service.query_backend == "scripted"
        assert (await service.health()).status is HealthStatus.DEGRADED


async def test_a_query_backend_that_does_not_load_is_replaced():
    documents, queries = ScriptedModel(), ScriptedModel(backend="light")
    queries.load_error = OSError("no file")
    async with serving(documents, queries) as service:
        assert (await service.embed_query("question")).vector.shape == (DIMENSION,)
        assert service.query_backend == "scripted"


async def test_a_query_backend_that_was_asked_for_stays():
    documents, queries = ScriptedModel(), ScriptedModel(backend="light")
    queries.noise = 0.2
    async with serving(documents, queries, query_backend="onnx") as service:
        await service.embed(["text"])
        await until(lambda: service._agreement is not None)

        assert service.query_backend == "light"
        assert (await service.health()).status is HealthStatus.DEGRADED


# The shared cache


@pytest.mark.traces("REQ-010-037")
async def test_another_process_need_not_embed_again():
    cache = DictCache()
    async with serving(ScriptedModel(), cache=cache) as service:
        [first] = await service.embed(["known"])
    other = ScriptedModel()
    async with serving(other, cache=cache) as service:
        [second, fresh] = await service.embed(["known", "new"])

    assert other.texts == ["new"]
    assert np.array_equal(second.vector, first.vector)
    assert fresh is not None
    assert ("scripted", content_hash("known")) in cache.kept


async def test_what_is_forgotten_is_in_no_cache():
    cache = DictCache()
    model = ScriptedModel()
    async with serving(model, cache=cache) as service:
        await service.embed(["secret", "other"])
        await service.forget(["secret"])

        assert set(cache.kept) == {("scripted", content_hash("other"))}
        await service.embed(["secret", "other"])

    assert model.texts.count("secret") == 2
    assert model.texts.count("other") == 1


async def test_a_failing_cache_fails_no_embedding():
    cache = DictCache()
    cache.error = ConnectionError("away")
    async with serving(ScriptedModel(), cache=cache) as service:
        encodings = await service.embed(["a", "b"])

        assert None not in encodings
        assert (await service.health()).details["shared_cache_failures"] == 2


async def test_a_cached_vector_of_another_dimension_is_not_used():
    cache = DictCache()
    cache.kept["scripted", content_hash("text")] = Encoding(vector=np.ones(7, dtype=np.float32))
    async with serving(ScriptedModel(), cache=cache) as service:
        [encoding] = await service.embed(["text"])

    assert encoding.vector.shape == (DIMENSION,)


async def test_concurrent_embeds_share_the_look_up_too():
    cache = DictCache()
    model = ScriptedModel()
    async with serving(model, cache=cache) as service:
        await asyncio.gather(*(service.embed(["shared"]) for _ in range(10)))

    assert cache.gets == 1
    assert model.texts == ["shared"]
