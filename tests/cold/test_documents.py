"""A document is kept for as long as the graph says that it is in the same state."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrata_memory.cold.base import ColdDocument
from orchestrata_memory.cold.documents import LONGEST, DocumentCache
from orchestrata_memory.models import MemoryRecord

NOW = datetime(2025, 1, 2, tzinfo=UTC)
STATE = [1, "2025-01-02T00:00:00.000000+00:00", "a model"]


def document(key: str = "k1", *, content: str = "said", tokens: bytes = b"") -> ColdDocument:
    record = MemoryRecord(
        key=key,
        content=content,
        volk_id="ENG:ALPHA",
        session_id="s1",
        created_at=NOW,
        updated_at=NOW,
        content_hash="",
    )
    return ColdDocument.of(record, content.split(), tokens=tokens, model="a model")


def test_only_the_very_state_is_given_back():
    cache = DocumentCache(1_000_000)
    first = document()
    cache.keep(STATE, first)
    assert cache.get("k1", STATE) is first
    for other in ([2, *STATE[1:]], [1, "later", STATE[2]], [*STATE[:2], None]):
        assert cache.get("k1", other) is None
    second = document(content="said otherwise")
    cache.keep([2, *STATE[1:]], second)
    assert cache.get("k1", [2, *STATE[1:]]) is second
    assert cache.get("k1", STATE) is None


def test_it_keeps_to_its_room():
    cache = DocumentCache(20_000)

    def kept() -> str:
        return "".join(key for key in "abcdef" if cache.get(key, STATE))

    for key in "abcd":
        cache.keep(STATE, document(key, tokens=b"x" * 5_000))
    assert kept() == "bcd"
    cache.get("b", STATE)
    cache.keep(STATE, document("e", tokens=b"x" * 5_000))
    assert kept() == "bde"
    cache.keep(STATE, document("f", tokens=b"x" * 14_000))
    assert kept() == "f"
    cache.keep(STATE, document("f", content="x" * (LONGEST + 1)))
    assert kept() == ""
    for key in "abc":
        cache.keep(STATE, document(key, tokens=b"x" * 5_000))
    assert kept() == "abc"


def test_no_room_keeps_nothing():
    cache = DocumentCache(0)
    cache.keep(STATE, document())
    assert cache.get("k1", STATE) is None
