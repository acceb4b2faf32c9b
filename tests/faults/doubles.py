"""Models, buses and the like that misbehave when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dependency_injector import providers

from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.container import MemoryContainer
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.hashing import HashingModel
from orchestrata_memory.embedding.service import EmbeddingService
from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.interfaces import EventHandler, SystemEvent
from orchestrata_memory.kernel.bus import InProcessEventBus
from tests.engine.conftest import RecordingKernel


class MoodyModel(HashingModel):
    """Remembers what it was given, and fails as told.

    Attributes:
        poison: Fails on every text that holds it; empty: on none.
        broken: Fails on everything.
        unloadable: Cannot be loaded.
        seen: Every text it was given.
    """

    def __init__(self, dimension: int = 384, *, name: str | None = None) -> None:
        super().__init__(dimension, name=name)
        self.poison = ""
        self.broken = False
        self.unloadable = False
        self.seen: list[str] = []

    def load(self) -> None:
        if self.unloadable:
            raise MemoryConfigurationError("embedding.model: its files are not there")

    def encode(self, texts: Sequence[str], *, with_tokens: bool) -> list[Encoding]:
        self.seen.extend(texts)
        if self.broken:
            raise RuntimeError("out of memory")
        if self.poison and any(self.poison in text for text in texts):
            raise ValueError("a text it cannot take")
        return super().encode(texts, with_tokens=with_tokens)


def use_model(container: MemoryContainer, model: HashingModel) -> None:
    """Let an engine embed with a model of ours."""
    settings = EmbeddingSettings(
        backend="hashing", dimension=model.dimension, query_backend="same", cache_embeddings=False
    )
    container.embedder.override(providers.Object(EmbeddingService(settings, document_model=model)))


class BadBus(InProcessEventBus):
    """A kernel's bus that raises or hangs when something is published."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = ""

    async def publish(self, event: SystemEvent) -> None:
        if self.mood == "raises":
            raise RuntimeError("the bus is broken")
        if self.mood == "hangs":
            await asyncio.Event().wait()
        await super().publish(event)


class BadBusKernel(RecordingKernel):
    """A kernel with such a bus."""

    def __init__(self) -> None:
        super().__init__()
        self.bus = BadBus()
        self._event_bus = self.bus


async def raising(_: SystemEvent) -> None:
    raise RuntimeError("a handler of somebody else's")


async def hanging(_: SystemEvent) -> None:
    await asyncio.Event().wait()


HANDLERS: dict[str, EventHandler] = {"raises": raising, "hangs": hanging}
