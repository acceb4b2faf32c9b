"""Identity and classification of stored summaries."""

from __future__ import annotations

import pytest

from orchestrata_memory.models import MemoryClassification as C
from orchestrata_memory.summaries.keys import narrowest, summary_key

BASE = {
    "owner": "ENG:ALPHA",
    "sources": [("a", 1), ("b", 2)],
    "strategy": "relevance",
    "budget": 2048,
    "counter": "words",
    "focus": None,
}


@pytest.mark.traces("REQ-010-035")
def test_the_same_things_give_the_same_key():
    assert summary_key(**BASE) == summary_key(**{**BASE, "sources": [("b", 2), ("a", 1)]})


@pytest.mark.traces("REQ-010-035")
@pytest.mark.parametrize(
    "change",
    [
        {"owner": "ENG:BETA"},
        {"sources": [("a", 1), ("b", 3)]},
        {"sources": [("a", 1)]},
        {"sources": [("a,1", 1), ("b", 2)]},
        {"strategy": "recency"},
        {"budget": 2047},
        {"counter": "anthropic:estimate"},
        {"focus": ""},
        {"focus": "None"},
        {"method": "abstractive"},
    ],
    ids=str,
)
def test_any_difference_gives_another_key(change):
    key = summary_key(**{**BASE, **change})

    assert key != summary_key(**BASE)
    assert len(key.encode()) <= 512
    assert "ENG" not in key


@pytest.mark.traces("REQ-010-049")
@pytest.mark.parametrize(
    ("given", "narrow"),
    [
        ([C.PRIVATE, C.SHARED, C.SYSTEM], C.PRIVATE),
        ([C.SYSTEM, C.SHARED], C.SHARED),
        ([C.SYSTEM], C.SYSTEM),
        ([], C.PRIVATE),
    ],
)
def test_a_summary_is_as_narrow_as_its_narrowest_source(given, narrow):
    assert narrowest(given) is narrow
