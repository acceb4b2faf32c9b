"""The dependency-injection container: how an engine is put together.

Each provider can be overridden before the engine is initialized:

    container = MemoryContainer(settings=settings, kernel=kernel)
    container.directory.override(providers.Object(my_directory))
    engine = container.engine()

Providers below `addresses` are resolved in `MemoryEngine.initialize`, once it is known where the
embedded servers listen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from dependency_injector import containers, providers

from orchestrata_memory.cold.store import GraphColdStore
from orchestrata_memory.config.settings import MemoryEngineSettings, SummarySettings
from orchestrata_memory.embedded.layout import default_data_dir
from orchestrata_memory.embedded.servers import EmbeddedAddresses, EmbeddedServers
from orchestrata_memory.embedding.factory import build_embedder
from orchestrata_memory.embedding.redis_cache import RedisVectorCache
from orchestrata_memory.engine.audit import AuditTrail
from orchestrata_memory.engine.delegating import Delegations
from orchestrata_memory.engine.doorway import utc_now
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.engine.parts import Parts
from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.governance.prolog import PrologGovernance
from orchestrata_memory.hot.store import RedisHotStore
from orchestrata_memory.interfaces import ComponentType, Kernel, VolkDirectory
from orchestrata_memory.kernel import ConfiguredDirectory, EventFactEmitter, InProcessKernel
from orchestrata_memory.retrieval.analysis import TextAnalyzer
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.search import SearchPipeline
from orchestrata_memory.summaries.abstractive import AbstractiveSummarizer
from orchestrata_memory.tokens.anthropic import AnthropicTokenCheck
from orchestrata_memory.tokens.registry import CounterRegistry


def _embedded_servers(settings: MemoryEngineSettings) -> EmbeddedServers:
    """Servers for what is not configured."""
    return EmbeddedServers(
        settings=settings.embedded,
        redis=settings.redis.url is None,
        graph=settings.graph.uri is None,
    )


def _audit_file(settings: MemoryEngineSettings) -> Path:
    data_dir = settings.embedded.data_dir or default_data_dir()
    return settings.audit.file or data_dir / "audit-fallback.jsonl"


def _directory(settings: MemoryEngineSettings, kernel: Kernel) -> VolkDirectory:
    """The kernel's directory of Volks where it offers one, else the configured one."""
    offered: VolkDirectory | None = getattr(kernel, "directory", None)
    return offered or ConfiguredDirectory(settings.governance)


def _anthropic_usable(settings: SummarySettings) -> bool:
    """A key alone asks for nothing: without the package it is only missed where it is wanted."""
    installed = find_spec("anthropic") is not None
    return settings.anthropic_api_key is not None and (installed or settings.abstractive)


def _abstractive(settings: SummarySettings) -> AbstractiveSummarizer | None:
    return AbstractiveSummarizer.from_settings(settings) if _anthropic_usable(settings) else None


def _token_check(settings: SummarySettings) -> AnthropicTokenCheck | None:
    if settings.anthropic_api_key is None or not _anthropic_usable(settings):
        return None
    return AnthropicTokenCheck(settings.anthropic_api_key.get_secret_value())


_MADE_ANEW = (
    *("hot", "cold", "vector_cache", "embedder", "governance", "audit", "delegations"),
    *("index", "search", "find", "abstractive", "token_check", "parts"),
)
"""What an initialization that failed leaves closed or built on addresses that have passed."""


def _assembler(container: MemoryContainer) -> Callable[[EmbeddedAddresses], Parts]:
    def assemble(addresses: EmbeddedAddresses) -> Parts:
        if container.addresses.overridden:
            # An attempt before this one failed: its parts are closed and call at old addresses.
            for name in _MADE_ANEW:
                getattr(container, name).reset()
            container.addresses.reset_override()
        container.addresses.override(providers.Object(addresses))
        parts: Parts = container.parts()
        return parts

    return assemble


class MemoryContainer(containers.DeclarativeContainer):
    """Providers of every part.

    Traces: REQ-010-002
    """

    __self__ = providers.Self()

    settings = providers.Dependency(instance_of=MemoryEngineSettings)
    kernel: providers.Dependency[Kernel] = providers.Dependency(
        default=providers.Singleton(InProcessKernel)
    )
    addresses: providers.Dependency[EmbeddedAddresses] = providers.Dependency(
        default=EmbeddedAddresses()
    )

    clock = providers.Object(utc_now)
    servers = providers.Singleton(_embedded_servers, settings)
    directory = providers.Singleton(_directory, settings, kernel)
    facts = providers.Singleton(EventFactEmitter, kernel)
    analyzer = providers.Singleton(TextAnalyzer, settings.provided.search.language)
    counters = providers.Singleton(CounterRegistry)
    hot = providers.Singleton(
        RedisHotStore,
        settings.provided.redis,
        url=addresses.provided.redis_url,
        outbox_limit=settings.provided.worker.outbox_limit,
    )
    cold = providers.Singleton(
        GraphColdStore,
        settings.provided.graph,
        dimension=settings.provided.embedding.dimension,
        server=addresses.provided.graph,
    )
    vector_cache = providers.Singleton(
        RedisVectorCache.from_settings, settings.provided.redis, url=addresses.provided.redis_url
    )
    embedder = providers.Singleton(build_embedder, settings.provided.embedding, cache=vector_cache)
    governance = providers.Singleton(
        PrologGovernance, settings.provided.governance, directory, clock=clock
    )
    audit = providers.Singleton(AuditTrail, hot, file=providers.Callable(_audit_file, settings))
    delegations = providers.Singleton(Delegations, hot, cold, governance)
    index = providers.Singleton(
        HotIndex, hot, analyzer, embedder, on_delegations=delegations.provided.refresh
    )
    search = providers.Singleton(
        SearchPipeline, hot, cold, index, embedder, governance, analyzer, settings.provided.search
    )
    find = providers.Singleton(FindPipeline, hot, cold, index, governance)
    abstractive = providers.Singleton(_abstractive, settings.provided.summary)
    token_check = providers.Singleton(_token_check, settings.provided.summary)
    parts = providers.Singleton(
        Parts,
        hot=hot,
        cold=cold,
        embedder=embedder,
        governance=governance,
        delegations=delegations,
        audit=audit,
        analyzer=analyzer,
        index=index,
        search=search,
        find=find,
        counters=counters,
        abstractive=abstractive,
        token_check=token_check,
    )
    engine = providers.Singleton(
        MemoryEngine,
        settings=settings,
        kernel=kernel,
        facts=facts,
        servers=servers,
        assemble=providers.Callable(_assembler, __self__),
        clock=clock,
    )


def _container(settings: MemoryEngineSettings) -> MemoryContainer:
    # The container would refuse it too, and show it, passwords included.
    if not isinstance(settings, MemoryEngineSettings):
        raise MemoryConfigurationError(
            f"settings: MemoryEngineSettings are wanted, not {type(settings).__name__}: "
            "make them by MemoryEngineSettings.model_validate or load_settings"
        )
    return MemoryContainer(settings=settings)


def build_engine(
    settings: MemoryEngineSettings | None = None, *, kernel: Kernel | None = None
) -> MemoryEngine:
    """An engine that is not initialized yet; without settings, the embedded default.

    Raises:
        MemoryConfigurationError: `settings` are something else.
    """
    container = _container(MemoryEngineSettings() if settings is None else settings)
    if kernel is not None:
        container.kernel.override(providers.Object(kernel))
    engine: MemoryEngine = container.engine()
    return engine


@asynccontextmanager
async def open_engine(
    settings: MemoryEngineSettings | None = None, *, kernel: Kernel | None = None
) -> AsyncIterator[MemoryEngine]:
    """A running engine for the length of a block."""
    async with build_engine(settings, kernel=kernel) as engine:
        yield engine


def register_memory_engine(
    kernel_container: containers.DynamicContainer,
    settings: MemoryEngineSettings,
    *,
    kernel: Kernel,
) -> MemoryContainer:
    """Register the engine in a kernel's container as `ComponentType.MEMORY_ENGINE`.

    The kernel resolves ``getattr(kernel_container, ComponentType.MEMORY_ENGINE)()`` and runs the
    component's lifecycle.

    Returns:
        The engine's own container, so that parts can be overridden before it is initialized.

    Traces: REQ-010-002
    """
    container = _container(settings)
    container.kernel.override(providers.Object(kernel))
    kernel_container.set_provider(ComponentType.MEMORY_ENGINE.value, container.engine)
    return container
