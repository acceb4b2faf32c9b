"""Which counter a context gets."""

from __future__ import annotations

import pytest

from orchestrata_memory.models import MemoryContext
from orchestrata_memory.tokens.base import ITokenCounter
from orchestrata_memory.tokens.registry import CounterRegistry


def context(provider: str | None, model: str | None = None) -> MemoryContext:
    return MemoryContext(volk_id="ENG:ALPHA", session_id="s", provider=provider, model=model)


@pytest.mark.traces("REQ-010-041")
@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("openai", "gpt-4", "tiktoken:cl100k_base"),
        ("OpenAI", None, "tiktoken:cl100k_base"),
        ("azure", "no-such-model", "tiktoken:cl100k_base"),
        ("anthropic", "claude-haiku-4-5", "anthropic:estimate"),
        ("mistral", "large", "words"),
        (None, None, "words"),
    ],
)
def test_the_provider_picks_the_counter(provider, model, name):
    counter = CounterRegistry().for_context(context(provider, model))

    assert counter.name == name
    assert isinstance(counter, ITokenCounter)


def test_a_newer_encoding_is_asked_for_by_model():
    assert "o200k_base" in CounterRegistry().for_context(context("openai", "gpt-4o")).name


def test_counters_are_shared():
    registry = CounterRegistry()

    assert registry.for_context(context("openai")) is registry.for_context(context("azure"))


@pytest.mark.traces("REQ-010-041")
def test_a_deployment_registers_its_own():
    class Bytes:
        name = "bytes"

        def count(self, text: str) -> int:
            return len(text.encode())

        def truncate(self, text: str, max_tokens: int) -> str:
            return text.encode()[:max_tokens].decode(errors="ignore")

    registry = CounterRegistry()
    registry.register("House", lambda _context: Bytes())

    assert registry.for_context(context("house")).count("é") == 2
