"""A document is kept for as long as the graph says that it is in the same state."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrata_memory.cold.base import ColdDocument
from orchestrata_memory.cold.documents import LONGEST, DocumentCache, size_of
from tests.cold.builders import record

STATE = [1, "2025-01-02T00:00:00.000000+00:00", "a model"]


def document(
    key: str = "k1",
    *,
    content: str = "said",
    tokens: bytes = b"",
    vector: bool = False,
    **changes: Any,
) -> ColdDocument:
    return ColdDocument.of(
        record(key, content=content, **changes),
        content.split(),
        vector=np.ones(384, dtype=np.float32) if vector else None,
        tokens=tokens,
        model="a model",
    )


def test_only_the_very_state_is_given_back():
    cache = DocumentCache(1_000_000)
    first = document()
    cache.keep(STATE, first, 1_000)
    assert cache.get("k1", STATE) is first
    for other in ([2, *STATE[1:]], [1, "later", STATE[2]], [*STATE[:2], None]):
        assert cache.get("k1", other) is None
    second = document(content="said otherwise")
    cache.keep([2, *STATE[1:]], second, 1_000)
    assert cache.get("k1", [2, *STATE[1:]]) is second
    assert cache.get("k1", STATE) is None


def test_it_keeps_to_its_room():
    cache = DocumentCache(20_000)

    def kept() -> str:
        return "".join(key for key in "abcdef" if cache.get(key, STATE))

    for key in "abcd":
        cache.keep(STATE, document(key), 6_000)
    assert kept() == "bcd"
    cache.get("b", STATE)
    cache.keep(STATE, document("e"), 6_000)
    assert kept() == "bde"
    cache.keep(STATE, document("f"), 15_000)
    assert kept() == "f"
    cache.keep(STATE, document("f"), LONGEST + 1)
    assert kept() == ""
    for key in "abc":
        cache.keep(STATE, document(key), 6_000)
    assert kept() == "abc"


def test_no_room_keeps_nothing():
    cache = DocumentCache(0)
    cache.keep(STATE, document(), 1_000)
    assert cache.get("k1", STATE) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda number: document(content=" ".join(f"word{number}{n}" for n in range(20))),
        lambda number: document(content=" ".join(f"w{number}-{n}" for n in range(700))),
        lambda number: document(content="\N{GREEK SMALL LETTER ALPHA} " * 2_000 + str(number)),
        lambda number: document(sources=tuple(f"source-{number}-{n:04}" for n in range(400))),
        lambda number: document(metadata={f"{number}-{n}": str(n) * 9 for n in range(400)}),
        lambda number: document(tokens=bytes(5_000), vector=True),
    ],
    ids=["short", "terms", "wide", "sources", "metadata", "vectors"],
)
def test_the_size_of_a_document_is_not_underestimated(make: Callable[[int], ColdDocument]):
    count = 50
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = [make(number) for number in range(count)]
        taken = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    sizes = [size_of(one, metadata=json.dumps(one.record.metadata)) for one in made]
    assert taken <= sum(sizes) / count <= 6 * taken
