"""What a summary without a language model says, and what it costs."""

from __future__ import annotations

import random

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrata_memory.models import InjectionStrategy, SummarizationStrategy
from orchestrata_memory.summaries.extractive import summarize
from orchestrata_memory.tokens.tiktoken import TiktokenCounter
from orchestrata_memory.tokens.words import WordCounter
from tests.summaries.samples import COUNTERS, NOW, source, vector_of

STRATEGIES = [*SummarizationStrategy, InjectionStrategy.HYBRID]
WORDS = TiktokenCounter()

# Distinct numbers and names make each of these a statement of its own.
_THINGS = ["build", "deployment", "certificate", "index", "queue", "schema", "token", "cache"]
_SCRIPTS = [
    "日本語の文章です。",
    "Ünïcödé größer.",
    "नमस्ते दुनिया।",
    "👨‍👩‍👧‍👦 together!",
    "مرحبا بالعالم.",
]


def statement(number: int) -> str:
    thing = _THINGS[number % len(_THINGS)]
    script = _SCRIPTS[number % len(_SCRIPTS)] if number % 7 == 0 else ""
    return f"The {thing} number {number} failed after {number * 37 % 101} minutes. {script}"


texts = st.lists(
    st.one_of(
        st.integers(0, 10_000).map(statement),
        st.text(min_size=1, max_size=80).filter(lambda text: text.strip() != ""),
        st.lists(st.integers(0, 10_000).map(statement), min_size=5, max_size=40).map(" ".join),
    ),
    max_size=25,
)


@pytest.mark.traces("REQ-010-022")
@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@settings(max_examples=150)
@given(
    contents=texts,
    max_tokens=st.one_of(st.integers(1, 80), st.integers(16, 600)),
    strategy=st.sampled_from(STRATEGIES),
)
def test_a_budget_is_never_exceeded(counter, contents, max_tokens, strategy):
    sources = [source(text, key=f"k{n}", days_ago=n) for n, text in enumerate(contents)]

    summary = summarize(sources, strategy=strategy, counter=counter, max_tokens=max_tokens, now=NOW)

    assert counter.count(summary.content) == summary.token_count <= max_tokens
    assert summary.source_count == len(summary.source_keys) == len(set(summary.source_keys))
    assert set(summary.source_keys) <= {f"k{n}" for n in range(len(contents))}
    assert bool(summary.content) == bool(summary.source_keys)


@pytest.mark.traces("REQ-010-022", "REQ-010-042")
@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@settings(max_examples=100)
@given(
    numbers=st.lists(st.integers(0, 10_000), min_size=1, max_size=60, unique=True),
    joined=st.integers(1, 12),
    max_tokens=st.integers(64, 700),
    strategy=st.sampled_from(STRATEGIES),
)
def test_a_budget_that_the_text_exceeds_is_used(counter, numbers, joined, max_tokens, strategy):
    contents = [
        " ".join(statement(number) for number in numbers[start : start + joined])
        for start in range(0, len(numbers), joined)
    ]
    sources = [source(text, key=f"k{n}", days_ago=n) for n, text in enumerate(contents)]

    summary = summarize(sources, strategy=strategy, counter=counter, max_tokens=max_tokens, now=NOW)

    if sum(counter.count(text) for text in contents) > max_tokens:
        assert summary.token_count >= 0.95 * max_tokens


@pytest.mark.traces("REQ-010-022")
@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@pytest.mark.parametrize("max_tokens", [64, 300, 2048])
@pytest.mark.parametrize(
    "content",
    [
        "word " * 20_000,
        "noblanksatall" * 4000,
        "日本語" * 8000,
        "\n".join(f"line {n} = {n * n}" for n in range(4000)),
        "👨‍👩‍👧‍👦 " * 4000,
    ],
    ids=["words", "run", "japanese", "lines", "emoji"],
)
def test_one_memory_of_ten_thousand_words_fills_it_too(counter, max_tokens, content):
    summary = summarize(
        [source(content, key="long")],
        strategy=SummarizationStrategy.RELEVANCE,
        counter=counter,
        max_tokens=max_tokens,
        now=NOW,
    )

    distinct = 0.95 if counter.count(content) > max_tokens and "line" in content else 0.0
    assert distinct * max_tokens <= summary.token_count <= max_tokens
    assert summary.source_keys == ("long",)
    assert summary.omitted == 0


class Tens:
    """Ten characters a token, what is left over free: parts count less than the whole."""

    name = "tens"

    def count(self, text: str) -> int:
        return len(text) // 10

    def truncate(self, text: str, max_tokens: int) -> str:
        return text[: max_tokens * 10 + 9]


@pytest.mark.traces("REQ-010-022")
@settings(max_examples=100)
@given(
    numbers=st.lists(st.integers(0, 10_000), min_size=1, max_size=60, unique=True),
    max_tokens=st.integers(1, 200),
)
def test_a_counter_whose_parts_count_less_than_the_whole_is_not_exceeded(numbers, max_tokens):
    counter = Tens()
    contents = [statement(number).strip() for number in numbers]
    sources = [source(text, key=f"k{n}") for n, text in enumerate(contents)]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.RECENCY,
        counter=counter,
        max_tokens=max_tokens,
        now=NOW,
    )

    assert counter.count(summary.content) == summary.token_count <= max_tokens
    if max_tokens >= 64 and sum(map(counter.count, contents)) > max_tokens:
        assert summary.token_count >= 0.95 * max_tokens


@pytest.mark.traces("REQ-010-023")
@settings(max_examples=100)
@given(
    marks=st.lists(st.integers(1000, 9999), min_size=1, max_size=40, unique=True),
    max_tokens=st.integers(16, 400),
    strategy=st.sampled_from(STRATEGIES),
)
def test_the_sources_are_exactly_those_that_speak(marks, max_tokens, strategy):
    """Each memory carries a mark in its first words, so that its voice is known."""
    sources = [
        source(f"M{mark} said M{mark}. Then M{mark} again said more.", key=f"M{mark}", days_ago=n)
        for n, mark in enumerate(marks)
    ]

    summary = summarize(
        sources, strategy=strategy, counter=WordCounter(), max_tokens=max_tokens, now=NOW
    )

    heard = list(dict.fromkeys(regex.findall(r"M\d{4}", summary.content)))
    assert list(summary.source_keys) == heard
    assert summary.omitted == len(marks) - len(heard)


@pytest.mark.traces("REQ-010-021")
def test_the_current_context_decides():
    food = source("Caroline likes sushi with ginger for dinner.", key="food")
    work = source("The deployment of billing needs a new certificate.", key="work")

    def first(focus: str) -> str:
        return summarize(
            [food, work],
            strategy=SummarizationStrategy.RELEVANCE,
            counter=WORDS,
            max_tokens=200,
            now=NOW,
            focus=vector_of(focus),
        ).source_keys[0]

    assert first("what sushi dinner does Caroline likes") == "food"
    assert first("renew the certificate before deployment") == "work"


@pytest.mark.traces("REQ-010-043")
def test_stated_relevance_goes_before_fit_and_fit_before_age():
    sources = [
        source("Old but stated.", key="stated", days_ago=900, relevance=0.0),
        source("Fits well, is old.", key="fits", days_ago=900, relevance=1.0),
        source("Fits badly, is new.", key="new", days_ago=0, relevance=0.0),
    ]
    sources[0].record.metadata["relevance"] = 1.0

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.RELEVANCE,
        counter=WORDS,
        max_tokens=200,
        now=NOW,
    )

    assert summary.source_keys == ("stated", "fits", "new")


def test_importance_counts_first_and_relevance_next():
    sources = [
        source("Alpha happened.", key="low", importance=0.2, relevance=1.0),
        source("Beta happened.", key="high and relevant", importance=0.9, relevance=0.9),
        source("Gamma happened.", key="high", importance=0.9, relevance=0.1),
        source("Delta happened.", key="unstated", relevance=1.0),
    ]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.IMPORTANCE,
        counter=WORDS,
        max_tokens=200,
        now=NOW,
    )

    assert summary.source_keys == ("high and relevant", "high", "low", "unstated")


def test_recency_goes_by_when_it_happened():
    sources = [
        source("Stored last, long ago.", key="old", occurred_at="2020-01-01T00:00:00+00:00"),
        source("Stored first, happened last.", key="new", days_ago=3),
    ]

    summary = summarize(
        sources, strategy=SummarizationStrategy.RECENCY, counter=WORDS, max_tokens=99, now=NOW
    )

    assert summary.source_keys == ("new", "old")


def test_hybrid_gives_half_to_each():
    old_but_fitting = [
        source(f"Fitting fact {n} about the mill.", key=f"fit{n}", days_ago=400, relevance=0.9)
        for n in range(40)
    ]
    new = [
        source(f"Fresh event {n} of today at noon.", key=f"new{n}", relevance=0.1)
        for n in range(40)
    ]

    summary = summarize(
        [*old_but_fitting, *new],
        strategy=InjectionStrategy.HYBRID,
        counter=WORDS,
        max_tokens=400,
        now=NOW,
    )

    kinds = [key[:3] for key in summary.source_keys]
    assert 0.3 < kinds.count("fit") / len(kinds) < 0.7


@pytest.mark.parametrize(
    "again",
    [
        "We chose Postgres for the audit trail.",
        "we chose postgres for the audit trail",
        "We have chosen it. We chose Postgres for the audit trail!",
        "We chose Postgres for the audit.",
    ],
)
def test_nothing_is_said_twice(again):
    sources = [
        source("We chose Postgres for the audit trail.", key="first", importance=1.0),
        source(again, key="again"),
    ]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.IMPORTANCE,
        counter=WORDS,
        max_tokens=200,
        now=NOW,
    )

    assert summary.content.casefold().count("postgres") == 1
    assert summary.omitted == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We will use Redis for locks.", "We will not use Redis for locks."),
        ("The limit is 10 ms.", "The limit is 20 ms."),
        ("Alice approved the change.", "Bob approved the change."),
        ("He moved from Bern.", "He moved to Bern."),
    ],
)
def test_a_small_difference_is_no_repetition(one, other):
    summary = summarize(
        [source(one, key="one"), source(other, key="other")],
        strategy=SummarizationStrategy.RECENCY,
        counter=WORDS,
        max_tokens=200,
        now=NOW,
    )

    assert one in summary.content
    assert other in summary.content


def test_memories_alike_wait_behind_another_of_like_worth():
    twin = "The release of billing was moved to June because tests of billing failed"
    sources = [
        source(f"{twin} once.", key="twin 1", relevance=0.80),
        source(f"{twin} twice.", key="twin 2", relevance=0.79),
        source("Security wants the keys rotated.", key="another", relevance=0.70),
        source("Nothing of note.", key="least", relevance=0.0),
    ]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.RELEVANCE,
        counter=WORDS,
        max_tokens=300,
        now=NOW,
    )

    assert summary.source_keys.index("another") < summary.source_keys.index("twin 2")


def test_one_long_memory_leaves_room_for_others():
    sources = [
        source(" ".join(statement(n) for n in range(300)), key="long", importance=1.0),
        *(source(f"Short note {n} on topic {n}.", key=f"s{n}") for n in range(10)),
    ]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.IMPORTANCE,
        counter=WORDS,
        max_tokens=600,
        now=NOW,
    )

    assert summary.source_keys[0] == "long"
    assert summary.source_count == 11


def test_what_a_reader_sees():
    sources = [
        source("I joined the group. It helped.", key="a", days_ago=2, speaker="Caroline"),
        source("Good to hear.", key="b", days_ago=2, speaker="Melanie"),
        source("def f():\n    return 1\n", key="c", days_ago=9),
    ]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.RECENCY,
        counter=WORDS,
        max_tokens=200,
        now=NOW,
        reader="ENG:ALPHA",
    )

    assert summary.content == (
        "- [2026-05-30] Caroline: I joined the group. It helped.\n"
        "- Melanie: Good to hear.\n"
        "- [2026-05-23] def f():\n    return 1"
    )


def test_what_another_volk_shared_carries_its_name():
    summary = summarize(
        [source("The key rotates on Monday.")],
        strategy=SummarizationStrategy.RECENCY,
        counter=WORDS,
        max_tokens=100,
        now=NOW,
        reader="ENG:BETA",
    )

    assert "ENG:ALPHA: The key rotates" in summary.content


def test_the_order_of_the_sources_does_not_matter():
    sources = [source(statement(n), key=f"k{n}", days_ago=n % 5) for n in range(50)]
    shuffled = random.Random(7).sample(sources, len(sources))

    def made(of: list) -> str:
        return summarize(
            of,
            strategy=SummarizationStrategy.RELEVANCE,
            counter=WORDS,
            max_tokens=300,
            now=NOW,
            focus=vector_of("the queue failed"),
        ).content

    assert made(sources) == made(shuffled)


def test_no_sources_give_an_empty_summary():
    summary = summarize(
        [], strategy=SummarizationStrategy.RELEVANCE, counter=WORDS, max_tokens=100, now=NOW
    )

    assert (summary.content, summary.token_count, summary.source_keys) == ("", 0, ())


def test_missing_and_odd_vectors_do_not_matter():
    sources = [
        source("One thing.", key="a", with_vector=False),
        source("Another matter.", key="b"),
    ]

    summary = summarize(
        sources,
        strategy=SummarizationStrategy.RELEVANCE,
        counter=WORDS,
        max_tokens=100,
        now=NOW,
        focus=vector_of("x")[:7],
    )

    assert set(summary.source_keys) == {"a", "b"}
