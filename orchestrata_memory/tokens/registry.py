"""Which counter serves which provider."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from orchestrata_memory.models import MemoryContext
from orchestrata_memory.tokens.anthropic import AnthropicCounter
from orchestrata_memory.tokens.base import ITokenCounter
from orchestrata_memory.tokens.tiktoken import TiktokenCounter
from orchestrata_memory.tokens.vocabularies import DEFAULT_ENCODING
from orchestrata_memory.tokens.words import WordCounter

CounterFactory = Callable[[MemoryContext], ITokenCounter]

OPENAI_PROVIDERS = ("openai", "azure", "azure_openai", "azure-openai")
ANTHROPIC_PROVIDERS = ("anthropic", "claude")


class CounterRegistry:
    """Counters by provider; a provider that nobody registered gets the word counter.

    Counters are made once and shared; they hold no state.

    Traces: REQ-010-041
    """

    def __init__(self) -> None:
        self._factories: dict[str, CounterFactory] = {}
        for provider in OPENAI_PROVIDERS:
            self.register(provider, _openai_counter)
        for provider in ANTHROPIC_PROVIDERS:
            self.register(provider, _anthropic_counter)

    @property
    def providers(self) -> tuple[str, ...]:
        """Names that have a counter of their own, sorted."""
        return tuple(sorted(self._factories))

    def register(self, provider: str, factory: CounterFactory) -> None:
        """Serve `provider` by what `factory` gives for a context; replaces what served it.

        Args:
            provider: As in `MemoryContext.provider`; case does not matter.
            factory: Called for every operation, so it should return a counter made before.
        """
        self._factories[provider.casefold()] = factory

    def for_context(self, context: MemoryContext) -> ITokenCounter:
        """The counter of the caller's provider and model.

        Raises:
            MemoryConfigurationError: The provider's vocabulary is not installed.
        """
        factory = self._factories.get((context.provider or "").casefold())
        return factory(context) if factory is not None else _word_counter()

    def warm_up(self) -> None:
        """Load what the usual counters need, a quarter of a second; call it off the event loop.

        Raises:
            MemoryConfigurationError: A vocabulary is not installed.
        """
        _tiktoken_counter(DEFAULT_ENCODING)
        _anthropic_singleton()


def is_anthropic(provider: str | None) -> bool:
    """Whether a context's provider is Anthropic, by any of its names."""
    return (provider or "").casefold() in ANTHROPIC_PROVIDERS


def encoding_of(model: str | None) -> str:
    """The encoding of an OpenAI model; cl100k_base where it is not known or not named."""
    if not model:
        return DEFAULT_ENCODING
    import tiktoken  # noqa: PLC0415 - see vocabularies

    try:
        return tiktoken.encoding_name_for_model(model)
    except KeyError:
        return DEFAULT_ENCODING


def _openai_counter(context: MemoryContext) -> ITokenCounter:
    return _tiktoken_counter(encoding_of(context.model))


def _anthropic_counter(_context: MemoryContext) -> ITokenCounter:
    return _anthropic_singleton()


@cache
def _tiktoken_counter(encoding: str) -> TiktokenCounter:
    return TiktokenCounter(encoding)


@cache
def _anthropic_singleton() -> AnthropicCounter:
    return AnthropicCounter()


@cache
def _word_counter() -> WordCounter:
    return WordCounter()
