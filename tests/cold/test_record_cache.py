"""A record is read again only where the graph's values are others."""

from __future__ import annotations

from orchestrata_memory.cold.record_cache import RecordCache
from orchestrata_memory.cold.rows import record_from

VALUES = (
    "k1", "said", None, ["a"], '{"relevance": 0.5}', "private", "ENG:ALPHA", "s1", None, "p", None,
    "2025-01-02T03:04:05.000006+00:00", "2025-01-02T03:04:05.000006+00:00", 3, 1, [], "hash", 1,
    [], [],
)  # fmt: skip


def with_content(text: str, key: str = "k1") -> list[object]:
    return [key, text, *VALUES[2:]]


def test_the_same_values_give_the_same_record():
    cache = RecordCache()
    first = cache.record(list(VALUES))
    assert first == record_from(VALUES)
    assert cache.record(list(VALUES)) is first


def test_any_other_value_is_read_though_the_version_is_the_same():
    cache = RecordCache()
    cache.record(list(VALUES))
    narrowed = [*VALUES[:15], ["ENG:BETA"], *VALUES[16:]]
    assert cache.record(narrowed).shared_with == ("ENG:BETA",)
    assert cache.record(with_content("said otherwise")).content == "said otherwise"


def test_it_keeps_to_its_bounds():
    cache = RecordCache()
    long = with_content("x" * 5_000)
    assert cache.record(long) is not cache.record(long)
    first = cache.record(with_content("x" * 3_900, "first"))
    for number in range(1_100):
        cache.record(with_content("y" * 3_900, f"k{number}"))
    assert cache.record(with_content("x" * 3_900, "first")) is not first
