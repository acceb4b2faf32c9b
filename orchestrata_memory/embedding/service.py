"""Embedding as the engine uses it: asynchronous, batched, cached, off the event loop.

Documents and queries may be served by two backends of one model, each on its own thread (a
*lane*): the reference for what is stored, a lighter one for queries, so that a query neither
waits behind a batch of documents nor needs the reference to be loaded. When the reference is
loaded first, both are compared on probe sentences; if they disagree, queries move to the
reference and health says so.

Memory: the cache of documents holds at most `cache_size` encodings and 64 MiB, that of queries
2,048 and 16 MiB; at most 1,024 texts wait at a time, later callers wait for room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence

from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.embedding.agreement import PROBES, REQUIRED_COSINE, least_cosine
from orchestrata_memory.embedding.base import EmbeddingModel, Encoding
from orchestrata_memory.embedding.cache import EncodingCache, VectorCache
from orchestrata_memory.embedding.guarded_cache import GuardedCache
from orchestrata_memory.embedding.lane import ModelLane, TextNotEmbeddedError
from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryEmbeddingError,
    MemoryEngineError,
    MemoryLifecycleError,
)
from orchestrata_memory.interfaces import HealthStatus, PartHealth
from orchestrata_memory.models.hashing import content_hash

_logger = logging.getLogger(__name__)

DOCUMENT_CACHE_BYTES = 64 * 1024 * 1024
QUERY_CACHE_BYTES = 16 * 1024 * 1024
QUERY_CACHE_ENTRIES = 2048
WAITING_TEXTS = 1024


class EmbeddingService:
    """The `Embedder` over one or two models.

    Args:
        settings: The embedding settings.
        document_model: Encodes what is stored; loaded when the first document comes.
        query_model: Encodes queries until it is found to disagree; None: `document_model` does.
        cache: A cache that processes share, or None; closed with the service.

    Traces: REQ-010-008, REQ-010-037
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        *,
        document_model: EmbeddingModel,
        query_model: EmbeddingModel | None = None,
        cache: VectorCache | None = None,
    ) -> None:
        self._settings = settings
        self._documents = self._lane(document_model, yields=query_model is not None)
        self._own_queries = self._lane(query_model) if query_model is not None else None
        self._queries = self._own_queries or self._documents
        if self._own_queries is not None:
            self._documents.on_loaded = self._start_comparison
        self._shared_cache = GuardedCache(
            cache if settings.cache_embeddings else None, dimension=settings.dimension
        )
        size = settings.cache_size if settings.cache_embeddings else 0
        self._document_cache = EncodingCache(max_entries=size, max_bytes=DOCUMENT_CACHE_BYTES)
        self._query_cache = EncodingCache(
            max_entries=min(size, QUERY_CACHE_ENTRIES), max_bytes=QUERY_CACHE_BYTES
        )
        self._under_way: dict[str, asyncio.Future[Encoding | None]] = {}
        self._queries_under_way: dict[str, asyncio.Future[Encoding]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Condition()
        self._agreement: float | None = None
        self._comparison_error: str = ""
        self._open = False

    @property
    def model_name(self) -> str:
        """Name stored beside every vector."""
        return self._documents.model.name

    @property
    def dimension(self) -> int:
        """Length of every vector, as configured; a model that differs is refused when it loads."""
        return self._settings.dimension

    @property
    def query_backend(self) -> str:
        """What encodes queries now, such as ``onnx``."""
        return self._queries.model.backend

    @property
    def model_calls(self) -> int:
        """Calls of the models so far, probes aside."""
        own = self._own_queries.model_calls if self._own_queries is not None else 0
        return self._documents.model_calls + own

    async def open(self) -> None:
        """Start the threads and load a query model of its own in the background; idempotent.

        May be called again after `close`; models and caches are kept.

        The document model is loaded by the first document.
        """
        if self._open:
            return
        self._room = asyncio.Condition()
        self._documents.open()
        if self._own_queries is not None:
            self._own_queries.open()
            self._start(self._load_quietly(self._own_queries))
        self._open = True

    async def close(self) -> None:
        """Refuse new texts, finish what waits, end the threads; idempotent."""
        self._open = False
        async with self._room:
            self._room.notify_all()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._documents.close()
        if self._own_queries is not None:
            await self._own_queries.close()
        await self._shared_cache.close()

    async def health(self) -> PartHealth:
        """What serves documents and queries, whether they agree, what waits."""
        status, message = self._verdict()
        return PartHealth(
            status=status,
            message=message,
            details={
                "model": self.model_name,
                "dimension": self.dimension,
                "document_backend": self._documents.model.backend,
                "document_model_loaded": self._documents.loaded,
                "query_backend": self.query_backend,
                "query_agreement": self._agreement,
                "waiting_texts": self._documents.waiting,
                "cached_documents": len(self._document_cache),
                "cached_bytes": self._document_cache.size_bytes + self._query_cache.size_bytes,
                "model_calls": self.model_calls,
                "shared_cache": self._shared_cache.exists,
                "shared_cache_failures": self._shared_cache.failures,
            },
        )

    async def embed(self, texts: Sequence[str]) -> list[Encoding | None]:
        """Encode documents in order; None for a blank text and where one text alone fails.

        An encoding that comes from the shared cache has the signs of its token states only, for
        its content words only; see `token_vectors`.

        Raises:
            MemoryEmbeddingError: The model as a whole does not work.
            MemoryConfigurationError: It cannot be loaded.
            MemoryLifecycleError: The service is not open.
        """
        self._check_open()
        found: dict[str, Encoding | None] = {}
        wanted: dict[str, str] = {}
        hashes = [content_hash(text) if text.strip() else "" for text in texts]
        for text, digest in zip(texts, hashes, strict=True):
            cached = self._document_cache.get(digest) if digest else None
            if cached is not None:
                found[digest] = cached
            elif digest:
                wanted[digest] = text
        size = self._settings.batch_size
        digests = list(wanted)
        for start in range(0, len(digests), size):
            part = {digest: wanted[digest] for digest in digests[start : start + size]}
            found.update(await self._embed_part(part))
        return [found.get(digest) for digest in hashes]

    async def embed_query(self, text: str) -> Encoding:
        """Encode one query ahead of waiting documents; concurrent queries share a model call.

        Raises:
            MemoryEmbeddingError: It is blank or could not be encoded.
            MemoryConfigurationError: The model cannot be loaded.
            MemoryLifecycleError: The service is not open.
        """
        self._check_open()
        if not text.strip():
            raise MemoryEmbeddingError("a blank query has no embedding")
        digest = content_hash(text)
        cached = self._query_cache.get(digest)
        if cached is not None:
            return cached
        lane = self._queries
        try:
            return await asyncio.shield(self._query_under_way(digest, text))
        except TextNotEmbeddedError:
            raise
        except (MemoryEmbeddingError, MemoryConfigurationError) as error:
            if lane is not self._own_queries:
                raise
            if lane is self._queries:
                self._set_aside(f"it does not work ({error})")
            if lane is self._queries:
                raise
        return await asyncio.shield(self._query_under_way(digest, text))

    async def forget(self, texts: Sequence[str]) -> None:
        """Drop the cached encodings of these texts here and in the shared cache; never raises.

        For contents that were deleted or replaced; whoever else holds one has it encoded anew.
        """
        hashes = [content_hash(text) for text in texts]
        for digest in hashes:
            self._document_cache.drop(digest)
            self._query_cache.drop(digest)
        await self._shared_cache.drop(self.model_name, hashes)

    # Documents

    async def _embed_part(self, part: Mapping[str, str]) -> dict[str, Encoding | None]:
        """At most one batch of distinct texts, each new or already under way for someone else."""
        await self._wait_for_room()
        new = {digest: text for digest, text in part.items() if digest not in self._under_way}
        loop = asyncio.get_running_loop()
        for digest in new:
            future: asyncio.Future[Encoding | None] = loop.create_future()
            future.add_done_callback(_look_at_failure)
            self._under_way[digest] = future
        futures = {digest: self._under_way[digest] for digest in part}
        if new:
            self._start(self._produce(new))
        await asyncio.wait(futures.values())
        return {digest: future.result() for digest, future in futures.items()}

    async def _wait_for_room(self) -> None:
        async with self._room:
            await self._room.wait_for(
                lambda: len(self._under_way) < WAITING_TEXTS or not self._open
            )
        self._check_open()

    async def _produce(self, texts: Mapping[str, str]) -> None:
        """Owned by the service: finishes for the cache's sake when every caller has gone."""
        try:
            known = await self._shared_cache.get(self.model_name, list(texts))
            for digest, encoding in known.items():
                self._finish(digest, encoding)
            missing = {digest: text for digest, text in texts.items() if digest not in known}
            fresh = await self._compute(missing)
            await self._shared_cache.put(self.model_name, fresh)
        except BaseException as error:
            for digest in texts:
                self._abandon(digest, error)
            if not isinstance(error, Exception):
                raise
        finally:
            async with self._room:
                self._room.notify_all()

    async def _compute(self, texts: Mapping[str, str]) -> dict[str, Encoding]:
        if not texts:
            return {}
        futures = self._documents.submit(
            list(texts.values()), with_tokens=self._settings.late_interaction, query=False
        )
        results = await asyncio.gather(*futures, return_exceptions=True)
        fresh: dict[str, Encoding] = {}
        for digest, result in zip(texts, results, strict=True):
            if isinstance(result, Encoding):
                fresh[digest] = result
                self._finish(digest, result)
            elif isinstance(result, TextNotEmbeddedError):
                self._finish(digest, None)
            else:
                self._abandon(digest, result)
        return fresh

    def _finish(self, digest: str, encoding: Encoding | None) -> None:
        if encoding is not None:
            self._document_cache.put(digest, encoding)
        future = self._under_way.pop(digest, None)
        if future is not None and not future.done():
            future.set_result(encoding)

    def _abandon(self, digest: str, error: BaseException) -> None:
        future = self._under_way.pop(digest, None)
        if future is None or future.done():
            return
        if isinstance(error, MemoryEngineError):
            future.set_exception(error)
        else:
            failure = MemoryEmbeddingError(f"embedding was given up: {type(error).__name__}")
            failure.__cause__ = error
            future.set_exception(failure)

    # Queries

    def _query_under_way(self, digest: str, text: str) -> asyncio.Future[Encoding]:
        under_way = self._queries_under_way.get(digest)
        if under_way is not None:
            return under_way
        lane = self._queries
        [future] = lane.submit([text], with_tokens=self._settings.late_interaction, query=True)
        self._queries_under_way[digest] = future

        def settle(done: asyncio.Future[Encoding]) -> None:
            self._queries_under_way.pop(digest, None)
            # A backend that was set aside meanwhile must leave nothing behind.
            if not done.cancelled() and done.exception() is None and lane is self._queries:
                self._query_cache.put(digest, done.result())

        future.add_done_callback(settle)
        return future

    # Two backends

    def _start_comparison(self) -> None:
        self._start(self._compare())

    async def _compare(self) -> None:
        """Hold the query model against the document model, once, when the latter has loaded."""
        lane = self._own_queries
        if lane is None:
            return
        try:
            pair = [
                await asyncio.gather(*side.submit(PROBES, with_tokens=False, query=True))
                for side in (self._documents, lane)
            ]
        except MemoryEngineError as error:
            self._set_aside(f"it does not work ({type(error).__name__})")
            return
        self._agreement = round(least_cosine(*pair), 6)
        if self._agreement < REQUIRED_COSINE:
            self._set_aside(
                f"its vectors agree with the document model's to {self._agreement:.4f} only, "
                f"{REQUIRED_COSINE} is required"
            )

    def _set_aside(self, reason: str) -> None:
        if self._settings.query_backend == "onnx" or self._own_queries is None:
            self._comparison_error = f"the query backend was kept as configured, though {reason}"
            return
        backend = self._own_queries.model.backend
        self._comparison_error = f"queries are served by the document model: {backend}: {reason}"
        _logger.warning("%s", self._comparison_error)
        self._queries = self._documents
        self._query_cache.clear()

    async def _load_quietly(self, lane: ModelLane) -> None:
        """Load ahead of need; a failure is for the first query to raise, and for health to say."""
        try:
            await lane.load()
        except MemoryEngineError as error:
            if lane is self._own_queries:
                self._set_aside(str(error))

    # Housekeeping

    def _lane(self, model: EmbeddingModel, *, yields: bool = False) -> ModelLane:
        return ModelLane(
            model,
            dimension=self._settings.dimension,
            queries_per_call=self._settings.batch_size,
            yields=yields,
        )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _check_open(self) -> None:
        if not self._open:
            raise MemoryLifecycleError("the embedding service is not open")

    def _verdict(self) -> tuple[HealthStatus, str]:
        if not self._open:
            return HealthStatus.STOPPED, ""
        if self._documents.load_error is not None:
            return HealthStatus.UNHEALTHY, str(self._documents.load_error)
        if self._comparison_error:
            return HealthStatus.DEGRADED, self._comparison_error
        return HealthStatus.HEALTHY, ""


def _look_at_failure(future: asyncio.Future[Encoding | None]) -> None:
    """Mark a failure as seen, so that one whose callers have gone is not reported by the loop."""
    if not future.cancelled():
        future.exception()
