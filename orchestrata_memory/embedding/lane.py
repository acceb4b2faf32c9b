"""One model on one thread, with a line of queries that goes ahead of the line of documents."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple

from orchestrata_memory.embedding.base import EmbeddingModel, Encoding
from orchestrata_memory.embedding.vectors import check_vector
from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryEmbeddingError,
    MemoryEngineError,
    MemoryLifecycleError,
)

_logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DOCUMENTS_PER_CALL = 8
"""Documents in one model call: what a query waits for at most when it shares the model."""

LETTERS = 8_000
"""Characters in one model call, unless one text alone has more."""

_NICE = 10

_PROBE = "Is the model able to encode a plain sentence?"


class TextNotEmbeddedError(MemoryEmbeddingError):
    """One text alone could not be embedded; the model itself works."""


class ModelNotLoadedError(MemoryEmbeddingError, MemoryConfigurationError):
    """The model cannot be loaded: a matter of configuration, and nothing is embedded."""


@dataclass(slots=True, eq=False)
class _Job:
    text: str
    with_tokens: bool
    future: asyncio.Future[Encoding] = field(repr=False)


class ModelLane:
    """Owns a model, its thread and the task that feeds it.

    Jobs that wait together share a model call. A call that fails is halved until the bad text
    stands alone, so that it fails and the others do not. A job whose future was cancelled before
    its turn is dropped.

    Args:
        model: The model; touched by this lane's thread only, once the lane is open.
        dimension: What its vectors must have.
        queries_per_call: Most queries in one call.
        yields: Its thread leaves the processor to whoever else wants it.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        *,
        dimension: int,
        queries_per_call: int,
        yields: bool = False,
    ) -> None:
        self._model = model
        self._yields = yields
        self._dimension = dimension
        self._queries_per_call = queries_per_call
        self._queries: deque[_Job] = deque()
        self._documents: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._loading: asyncio.Future[None] | None = None
        self.on_loaded: Callable[[], None] | None = None
        self.loaded = False
        self.load_error: MemoryEngineError | None = None
        self.model_calls = 0

    @property
    def model(self) -> EmbeddingModel:
        """The lane's model: for its names; only the lane's thread computes with it."""
        return self._model

    @property
    def waiting(self) -> int:
        """Jobs that no call has taken yet."""
        return len(self._queries) + len(self._documents)

    def open(self) -> None:
        """Start the thread and the task in the running event loop; again after `close`."""
        if self._task is None or self._task.done():
            name = f"embedding-{self._model.backend}"
            self._closing = False
            self._wake = asyncio.Event()
            self._executor = ThreadPoolExecutor(
                1, thread_name_prefix=name, initializer=_step_back if self._yields else None
            )
            self._task = asyncio.create_task(self._run(), name=name)

    async def close(self) -> None:
        """Finish what waits, then end the task and the thread; idempotent."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            try:
                await self._task
            finally:
                self._fail_waiting()
        executor, self._executor = self._executor, None
        if executor is not None:  # its thread is idle by now, so this takes no time
            await asyncio.to_thread(executor.shutdown)

    async def load(self) -> None:
        """Load the model on its thread; concurrent calls share one attempt, a later one tries anew.

        Raises:
            MemoryConfigurationError: It cannot be loaded, or has another dimension.
        """
        if self.loaded:
            return
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load_once())
        await asyncio.shield(self._loading)

    def submit(
        self, texts: Sequence[str], *, with_tokens: bool, query: bool
    ) -> list[asyncio.Future[Encoding]]:
        """Put texts in line; each future gives its encoding or a `MemoryEmbeddingError`.

        Raises:
            MemoryLifecycleError: The lane is not open.
        """
        if self._task is None or self._closing or self._task.done():
            raise MemoryLifecycleError("the embedding service is not open")
        loop = asyncio.get_running_loop()
        jobs = [_Job(text, with_tokens, loop.create_future()) for text in texts]
        for job in jobs:
            job.future.add_done_callback(_retrieve)
        if query:
            self._queries.extend(jobs)
        else:  # texts of like length share calls, so little of a call is padding
            self._documents.extend(sorted(jobs, key=lambda job: len(job.text)))
        self._wake.set()
        return [job.future for job in jobs]

    async def _load_once(self) -> None:
        try:
            await self._in_thread(self._model.load)
            _check_dimension(self._model, self._dimension)
        except MemoryEngineError as error:
            self.load_error = error
            raise
        except Exception as error:
            self.load_error = MemoryConfigurationError(
                f"embedding.model: {self._model.name} could not be loaded ({type(error).__name__})"
            )
            raise self.load_error from error
        else:
            self.loaded, self.load_error = True, None
            if self.on_loaded is not None:
                self.on_loaded()
        finally:
            self._loading = None

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.waiting:
                await self._serve(self._take())
            if self._closing:
                return

    def _take(self) -> list[_Job]:
        line, most = (
            (self._queries, self._queries_per_call)
            if self._queries
            else (self._documents, DOCUMENTS_PER_CALL)
        )
        jobs: list[_Job] = []
        letters = 0
        while line and len(jobs) < most and (not jobs or letters + len(line[0].text) < LETTERS):
            job = line.popleft()
            if not job.future.done():
                jobs.append(job)
                letters += len(job.text)
        return jobs

    async def _serve(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        try:
            await self.load()
            texts = [job.text for job in jobs]
            tokens = any(job.with_tokens for job in jobs)
            results = await self._in_thread(self._encode_isolating, texts, tokens)
        except BaseException as error:
            for job in jobs:
                _fail(job, error)
            if isinstance(error, Exception):
                return  # the lane outlives whatever a model does
            raise
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, Exception):
                _fail(job, result)
            elif not job.future.done():
                job.future.set_result(result)

    async def _in_thread(self, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, function, *arguments)

    # From here on: on the model's thread.

    def _encode_isolating(
        self, texts: list[str], with_tokens: bool
    ) -> list[Encoding | TextNotEmbeddedError]:
        """Encode; a failing call is halved until each bad text stands alone.

        Raises:
            MemoryEmbeddingError: A plain probe fails too: it is the model, not a text.
        """
        try:
            return self._encode_checked(texts, with_tokens)
        except Exception as error:
            if len(texts) > 1:
                middle = len(texts) // 2
                return [
                    *self._encode_isolating(texts[:middle], with_tokens),
                    *self._encode_isolating(texts[middle:], with_tokens),
                ]
            if not self._probe():
                raise MemoryEmbeddingError(
                    f"the embedding model {self._model.name} ({self._model.backend}) does not "
                    f"work: {type(error).__name__}"
                ) from error
            _logger.warning("one text could not be embedded: %s", type(error).__name__)
            failure = TextNotEmbeddedError(
                f"the text could not be embedded: {type(error).__name__}"
            )
            failure.__cause__ = error
            return [failure]

    def _encode_checked(
        self, texts: list[str], with_tokens: bool
    ) -> list[Encoding | TextNotEmbeddedError]:
        self.model_calls += 1
        encodings = self._model.encode(texts, with_tokens=with_tokens)
        if len(encodings) != len(texts):
            raise MemoryEmbeddingError("the model gave another number of vectors than texts")
        return [self._checked(encoding) for encoding in encodings]

    def _checked(self, encoding: Encoding) -> Encoding | TextNotEmbeddedError:
        try:
            check_vector(encoding.vector, self._dimension)
        except MemoryEmbeddingError as error:
            return TextNotEmbeddedError(str(error))
        return encoding

    def _probe(self) -> bool:
        try:
            self._model.encode([_PROBE], with_tokens=False)
        except Exception:  # noqa: BLE001 - any failure is the answer
            return False
        return True

    def _fail_waiting(self) -> None:
        for job in (*self._queries, *self._documents):
            _fail(job, MemoryLifecycleError("the embedding service closed"))
        self._queries.clear()
        self._documents.clear()


def _step_back() -> None:
    """Lower this thread's priority, where a system has one for each thread.

    Documents can wait; the event loop, which answers stores meanwhile, cannot.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _fail(job: _Job, error: BaseException) -> None:
    if job.future.done():
        return
    if isinstance(error, MemoryConfigurationError):
        unloaded = ModelNotLoadedError(str(error))
        unloaded.__cause__ = error
        error = unloaded
    elif not isinstance(error, MemoryEngineError):
        failure = MemoryEmbeddingError(f"embedding failed: {type(error).__name__}")
        failure.__cause__ = error
        error = failure
    job.future.set_exception(error)


def _retrieve(future: asyncio.Future[Encoding]) -> None:
    """Look at an abandoned failure, so that the loop does not report it as never retrieved."""
    if not future.cancelled():
        with suppress(Exception):
            future.exception()


def _check_dimension(model: EmbeddingModel, dimension: int) -> None:
    if model.dimension != dimension:
        raise MemoryConfigurationError(
            f"embedding.dimension: {dimension} is configured, but the model {model.name} gives "
            f"{model.dimension}: set embedding.dimension to {model.dimension} and re-embed what "
            "is stored, or choose a model of the stored dimension"
        )
