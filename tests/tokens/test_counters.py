"""Counts and cuts of every counter, over any text."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrata_memory.tokens.anthropic import AnthropicCounter
from orchestrata_memory.tokens.base import ITokenCounter
from orchestrata_memory.tokens.characters import LONGEST_CLUSTER, boundaries
from orchestrata_memory.tokens.tiktoken import TiktokenCounter
from orchestrata_memory.tokens.words import WordCounter

COUNTERS: list[ITokenCounter] = [WordCounter(), TiktokenCounter(), AnthropicCounter()]
every_counter = pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)

FAMILY = "👨‍👩‍👧‍👦"
awkward = st.sampled_from(
    [
        FAMILY,
        "🏳️‍🌈",
        "🇩🇪🇫🇷",
        "\u0301",
        "e\u0301",
        "नमस्ते",
        "한국어",
        "日本語。",
        "\u0600a",
        "\r\n",
        "\n\n\n  ",
        "    ",
        "don't",
        "1234567",
        "<|endoftext|>",
        "\ud800",
        "antidisestablishmentarianism",
        "שלום",
        "a",
        " the",
        ", and",
        "====",
    ]
)
any_text = st.lists(st.one_of(awkward, st.text(max_size=6)), max_size=12).map("".join)


def cuts(text: str) -> list[int]:
    """Every place a text may be cut, found naively."""
    found = [0]
    for match in regex.finditer(r"\X", text):
        start, end = match.span()
        found.extend(range(start + LONGEST_CLUSTER, end, LONGEST_CLUSTER))
        found.append(end)
    return sorted(set(found))


@pytest.mark.traces("REQ-010-041")
@every_counter
@settings(max_examples=300)
@given(text=any_text, max_tokens=st.integers(0, 40))
def test_a_cut_is_the_longest_prefix_that_fits(counter, text, max_tokens):
    cut = counter.truncate(text, max_tokens)

    assert text.startswith(cut)
    assert counter.count(cut) <= max_tokens
    fitting = [end for end in cuts(text) if counter.count(text[:end]) <= max_tokens]
    assert len(cut) == max(fitting)


@every_counter
@settings(max_examples=100)
@given(text=any_text)
def test_a_text_within_the_budget_is_left_alone(counter, text):
    assert counter.truncate(text, counter.count(text)) == text


@pytest.mark.traces("REQ-010-041")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("お誕生日おめでとう", 9),
        ("2 + 2 = 4", 7),
        ("antidisestablishmentarianism", 6),
        ("<|endoftext|>", 7),
    ],
)
def test_tiktoken_counts_what_openai_publishes(text, expected):
    assert TiktokenCounter("cl100k_base").count(text) == expected


@pytest.mark.traces("REQ-010-041")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("Hello, world!", 4),
        ("don't", 3),
        ("snake_case über 3.14", 5),
        ("日本語です", 5),
        ("สวัสดี", 4),
        ("x" * 100, 4),
        ("e\u0301", 1),
    ],
)
def test_words_are_counted_in_every_script(text, expected):
    assert WordCounter().count(text) == expected


@pytest.mark.traces("REQ-010-041")
@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 50,
        "def parse(value: str) -> int:\n    return int(value, 16)\n" * 40,
        '{"id": "7f3e-11", "at": "2026-03-04T05:06:07Z", "ok": true}\n' * 40,
        "Die Zusammenarbeit der Arbeitsgruppen wurde erheblich verbessert. " * 40,
        "日本語の文章は空白で区切られません。" * 40,
        "नमस्ते दुनिया, आप कैसे हैं? " * 40,
        "a" * 512,
        FAMILY * 20,
    ],
    ids=["prose", "code", "json", "german", "japanese", "hindi", "run", "emoji"],
)
def test_the_estimate_for_anthropic_is_not_too_low(text):
    """The endpoint's counts were at most 1.55 times cl100k_base and 2.7 letters a token."""
    estimate = AnthropicCounter().count(text)

    assert estimate >= 1.55 * TiktokenCounter().count(text)
    assert estimate >= sum(map(len, text.split())) / 2.7


def test_an_encoding_that_is_not_here_is_replaced_and_named():
    counter = TiktokenCounter("p50k_edit")

    assert counter.name == "tiktoken:cl100k_base (for p50k_edit)"
    assert counter.count("hello world") == 2


@every_counter
@pytest.mark.parametrize("unit", ["word ", "日本語", "ab", " ", "\u0301", FAMILY, "=-", "9", "\n"])
def test_huge_texts_take_time_in_proportion(counter, unit):
    """A hundred thousand characters; anything quadratic would take minutes."""
    text = unit * (100_000 // len(unit))
    before = time.monotonic()

    cut = counter.truncate(text, 1000)

    assert counter.count(cut) <= 1000
    assert time.monotonic() - before < 10


@settings(max_examples=200)
@given(text=any_text, data=st.data())
def test_boundaries_found_from_the_middle_are_those_found_from_the_start(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))

    assert boundaries(text, start, end) == [cut for cut in cuts(text) if start <= cut <= end]
