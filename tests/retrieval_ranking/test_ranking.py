"""One score from all the evidence."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.cold.base import TermStatistics
from orchestrata_memory.config.settings import SearchSettings
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.token_vectors import pack
from orchestrata_memory.retrieval import weights
from orchestrata_memory.retrieval.coherence import coherence
from orchestrata_memory.retrieval.pool_view import PoolView
from orchestrata_memory.retrieval.ranking import context_slots
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients
from tests.retrieval_ranking.making import (
    days_ago,
    encoding,
    keys,
    passage,
    pool,
    ranked,
    scores,
)

WORDS = ("red", "boat", "harbour", "storm", "captain", "sails", "rope", "E1234", "mast")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=0, max_size=6).map(" ".join)
SHARES = st.floats(0.0, 1.0)


@st.composite
def pools(draw):
    count = draw(st.integers(1, 8))
    made = [
        passage(
            f"k{number}",
            draw(TEXTS),
            position=draw(st.sampled_from([0, number + 1])),
            session=draw(st.sampled_from("ab")),
            speaker=draw(st.sampled_from(["Ann", "Bob"])),
            created_at=days_ago(draw(st.floats(-10, 4000))),
            relevance=draw(st.none() | SHARES),
            cosine=draw(st.none() | st.floats(-1.0, 1.0)),
        )
        for number in range(count)
    ]
    split = draw(st.integers(1, count))
    return pool(made[:split], made[split:])


@pytest.mark.traces("REQ-010-018")
@given(pools(), TEXTS, st.booleans())
def test_scores_are_shares_that_fall_and_add_up(of, query, with_vector):
    found = ranked(
        f"What did Ann say {query} yesterday?",
        of,
        encoding=encoding() if with_vector else None,
        speakers=["Ann"],
    )
    assert sorted(keys(found)) == sorted(one.key for one in of.candidates)
    for one, following in itertools.pairwise(found):
        assert (-one.score, one.passage.key) <= (-following.score, following.passage.key)
    for one in found:
        said = one.explanation
        assert 0.0 <= one.score <= 1.0
        assert said.score == one.score
        for parts, total in ((said.parts, one.score), (said.match, said.parts["match"][1])):
            assert all(
                0.0 <= weight <= 1.0 and 0.0 <= value <= 1.0 for weight, value in parts.values()
            )
            assert math.isclose(
                sum(weight * value for weight, value in parts.values()), total, abs_tol=1e-9
            )
        assert one.holds_term == bool(said.terms)


@given(pools(), TEXTS, st.randoms())
def test_the_order_of_the_pool_does_not_matter(of, query, random):
    candidates, context = list(of.candidates), list(of.context.items())
    random.shuffle(candidates)
    random.shuffle(context)
    shuffled = dataclasses.replace(of, candidates=tuple(candidates), context=dict(context))
    before, after = (ranked(query, one, encoding=encoding()) for one in (of, shuffled))
    assert [(one.passage.key, one.score) for one in before] == [
        (one.passage.key, one.score) for one in after
    ]


def with_evidence(relevance, match, age):
    """Two entries of one pool, the first with the evidence given."""
    found = ranked(
        "red boat",
        pool(
            [
                passage(
                    "a",
                    "red boat" if match else "blue",
                    cosine=match,
                    relevance=relevance,
                    created_at=days_ago(age),
                ),
                passage("b", "red boat", cosine=0.5, relevance=0.5),
            ]
        ),
        encoding=encoding(),
    )
    return scores(found)["a"]


@pytest.mark.traces("REQ-010-043")
@given(SHARES, SHARES, st.floats(0, 1e5), st.floats(0, 1e5))
def test_full_relevance_outweighs_all_lower_evidence(low, high, age, other_age):
    assert with_evidence(1.0, low, age) > with_evidence(0.0, high, other_age)


@pytest.mark.traces("REQ-010-043")
@given(SHARES, st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_full_match_outweighs_all_recency(relevance, age, other_age):
    full, none = (
        weights.RELEVANCE * relevance + weights.MATCH * match + weights.RECENCY * recency
        for match, recency in ((1.0, 0.5 ** (age / 30)), (0.0, 0.5 ** (other_age / 30)))
    )
    assert full > none
    # and on entries: everything found and old above nothing found and new
    found = ranked(
        "red boat",
        pool(
            [
                passage(
                    "old",
                    "red boat " * 40,
                    cosine=1.0,
                    relevance=relevance,
                    created_at=days_ago(age),
                ),
                passage(
                    "new", "blue", cosine=-1.0, relevance=relevance, created_at=days_ago(other_age)
                ),
            ]
        ),
        encoding=encoding(),
    )
    assert keys(found) == ["old", "new"]


def test_the_shares_obey_the_order_of_evidence():
    assert weights.RELEVANCE > weights.MATCH + weights.RECENCY
    assert weights.MATCH > weights.RECENCY
    assert math.isclose(weights.RELEVANCE + weights.MATCH + weights.RECENCY, 1.0)


@pytest.mark.traces("REQ-010-018", "REQ-010-043")
@given(pools(), TEXTS, st.integers(0, 7), st.floats(0.0, 0.5))
def test_more_relevance_or_newer_never_lowers_a_score(of, query, index, more):
    chosen = of.candidates[index % len(of.candidates)]
    before = scores(ranked(query, of, encoding=encoding()))[chosen.key]
    raised = dataclasses.replace(
        chosen,
        relevance=min(1.0, (0.5 if chosen.relevance is None else chosen.relevance) + more),
        created_at=max(chosen.created_at, days_ago(0)),
    )
    changed = dataclasses.replace(
        of,
        candidates=tuple(raised if one is chosen else one for one in of.candidates),
        context={**of.context, chosen.slot: raised} if chosen.slot in of.context else of.context,
    )
    assert scores(ranked(query, changed, encoding=encoding()))[chosen.key] >= before - 1e-12


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_the_closer_vector_never_ranks_lower(one, other):
    found = scores(
        ranked(
            "red boat",
            pool([passage("a", "red", cosine=one), passage("b", "red", cosine=other)]),
            encoding=encoding(),
        )
    )
    if one >= other:
        assert found["a"] >= found["b"]


@given(TEXTS, st.sampled_from(WORDS))
def test_one_more_term_of_the_query_never_lowers_a_score(text, word):
    statistics = TermStatistics(
        documents=50, average_length=6.0, frequencies={word.lower(): 3, "anchor": 4}
    )
    of = pool(
        [passage("a", f"{text} filler"), passage("b", f"{text} {word}")], statistics=statistics
    )
    found = scores(ranked(f"{word} anchor", of))
    assert found["b"] >= found["a"]


@pytest.mark.traces("REQ-010-018")
def test_recency_halves_with_the_configured_half_life():
    of = pool([passage("k", "red", created_at=days_ago(10))])
    for half_life, expected in ((10.0, 0.5), (5.0, 0.25), (20.0, 0.5**0.5)):
        settings = SearchSettings(recency_half_life_days=half_life)
        said = ranked("red", of, settings=settings)[0].explanation
        assert said.parts["recency"][1] == pytest.approx(expected)


def test_absent_relevance_is_neutral():
    of = pool([passage("low", relevance=0.2), passage("none"), passage("high", relevance=0.8)])
    assert keys(ranked("red", of)) == ["high", "none", "low"]


def test_a_missing_vector_is_no_error():
    found = ranked("red", pool([passage("a", "red"), passage("b", "blue")]), encoding=encoding())
    assert keys(found) == ["a", "b"]
    assert found[0].explanation.similarity is None
    assert "cosine" not in ranked("red", pool([passage("a", "red")]))[0].explanation.match


# --- context --------------------------------------------------------------------------------


def test_the_words_before_find_the_answer():
    of = pool(
        [
            passage("question", "where is the captain from?", position=1, cosine=0.3),
            passage("answer", "Lisbon, born and raised", position=2, cosine=0.3),
            passage("far", "Lisbon, born and raised", position=40, cosine=0.3),
        ]
    )
    found = scores(ranked("captain origin", of, encoding=encoding()))
    assert found["answer"] > found["far"]
    alone = scores(
        ranked("captain origin", of, encoding=encoding(), ingredients=EVERYTHING.without("context"))
    )
    assert alone["answer"] == alone["far"]


def test_context_ends_at_the_stream():
    of = pool(
        [
            passage("question", "where is the captain from?", position=1, cosine=0.3),
            passage("other", "Lisbon", position=2, session="t", cosine=0.3),
            passage("nowhere", "Lisbon", cosine=0.3),
        ]
    )
    found = scores(ranked("captain", of, encoding=encoding()))
    assert found["other"] == found["nowhere"]


def stream(cosines):
    made = [passage(f"k{i:04}", position=i + 1, cosine=float(c)) for i, c in enumerate(cosines)]
    best = sorted(made, key=lambda one: -one.cosine)[:100]
    slots = context_slots(best)
    return PoolView.of(pool(best, [one for one in made if one.slot in slots and one not in best]))


def test_context_counts_where_neighbours_belong_together():
    random = np.random.default_rng(3)
    noise = random.normal(0, 0.1, 4004)
    drifting = 0.2 + np.convolve(noise, np.ones(5) / 2, mode="valid")[:4000]
    assert coherence(stream(drifting)) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_context_does_not_count_where_neighbours_mean_nothing(seed):
    random = np.random.default_rng(seed)
    assert coherence(stream(random.normal(0.1, 0.1, 4000))) < 0.5


def test_a_few_entries_are_taken_to_belong_together():
    assert coherence(stream([0.1, 0.9, 0.2])) == 1.0


def test_what_is_assumed_fades_with_what_is_seen():
    random = np.random.default_rng(1)
    assert coherence(stream(random.normal(0.1, 0.1, 40_000))) == 0.0


def of_pieces(states):
    pieces = ("e1234", "boat", "mast")
    return Encoding(vector=np.ones(4, dtype=np.float32) / 2, tokens=states, pieces=pieces)


def unrelated(count):
    """A stream that means nothing, with token vectors, and one entry that holds an identifier."""
    random = np.random.default_rng(5)
    states = random.normal(size=(count, 3, 4)).astype(np.float32)
    made = [
        passage(
            f"k{i:04}",
            "E1234" if i == 7 else "boat",
            position=i + 1,
            cosine=float(random.normal(0.2, 0.1)),
            tokens=pack(of_pieces(states[i])),
        )
        for i in range(count)
    ]
    return pool(made)


@pytest.fixture
def coherent(monkeypatch):
    """Sets how coherent every stream is."""

    def be(value):
        monkeypatch.setattr("orchestrata_memory.retrieval.ranking.coherence", lambda _: value)

    return be


def test_word_pieces_count_as_far_as_the_stream_is_coherent(coherent):
    of, query = unrelated(30), of_pieces(np.eye(4, dtype=np.float32)[:3])

    def told(ingredients=EVERYTHING):
        return ranked("E1234 boat", of, encoding=query, ingredients=ingredients)[
            0
        ].explanation.match

    coherent(0.0)
    assert not {"late_own", "late_window"} & told().keys()
    coherent(1.0)
    assert {"late_own", "late_window"} <= told().keys()
    assert {"late_own", "late_window"} <= told(EVERYTHING.without("context")).keys()


def test_scores_do_not_jump_with_coherence(coherent):
    of, query = unrelated(30), of_pieces(np.eye(4, dtype=np.float32)[:3])
    found = []
    for value in (0.0, 1e-6, 0.5 - 1e-6, 0.5, 1 - 1e-6, 1.0):
        coherent(value)
        found.append(scores(ranked("E1234 boat", of, encoding=query)))
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first == pytest.approx(second, abs=1e-4)


def test_context_slots_are_the_places_around():
    assert ("s", "ENG:ALPHA", 9) in context_slots([passage("k", position=10)])
    assert ("s", "ENG:ALPHA", 10) not in context_slots([passage("k", position=10)])
    assert context_slots([passage("k", position=0)]) == set()
    assert all(slot[2] > 0 for slot in context_slots([passage("k", position=1)]))


# --- what others have does not matter ----------------------------------------------------------


@pytest.mark.traces("REQ-010-018")
def test_scores_come_from_the_statistics_given():
    made = [passage("a", "red boat"), passage("b", "storm")]
    few = TermStatistics(documents=100, average_length=5.0, frequencies={"red": 1, "storm": 50})
    many = TermStatistics(documents=100, average_length=5.0, frequencies={"red": 50, "storm": 1})
    assert keys(ranked("red storm", pool(made, statistics=few))) == ["a", "b"]
    assert keys(ranked("red storm", pool(made, statistics=many))) == ["b", "a"]


@pytest.mark.parametrize(
    "statistics",
    [
        TermStatistics(documents=0, average_length=0.0),
        TermStatistics(documents=1, average_length=0.5, frequencies={"red": 9}),
    ],
)
def test_statistics_that_lag_behind_break_nothing(statistics):
    found = ranked("red", pool([passage("a", "red"), passage("b")], statistics=statistics))
    assert keys(found) == ["a", "b"]


# --- identifiers ----------------------------------------------------------------------------


@pytest.mark.traces("REQ-010-016")
def test_the_asked_identifier_beats_a_closer_vector():
    made = [
        passage(f"k{number}", f"deployment failed with error E{number}", cosine=0.99)
        for number in range(1200, 1234)
    ]
    made.append(passage("it", "deployment failed with error E1234", cosine=0.9))
    found = ranked("deployment failed with error E1234", pool(made), encoding=encoding())
    assert found[0].passage.key == "it"


# --- late interaction -----------------------------------------------------------------------


def words(*vectors):
    states = np.array(vectors, dtype=np.float32)
    states /= np.linalg.norm(states, axis=1, keepdims=True)
    return states


def packed(states, pieces):
    return pack(Encoding(vector=states[0], tokens=states, pieces=tuple(pieces)))


def test_late_interaction_prefers_the_entry_that_holds_each_meaning():
    random = np.random.default_rng(1)
    boat, storm, other = (random.normal(size=64) for _ in range(3))
    query = Encoding(vector=words(boat)[0], tokens=words(boat, storm), pieces=("boat", "storm"))
    of = pool(
        [
            passage("both", cosine=0.3, tokens=packed(words(storm, boat), ["tempest", "vessel"])),
            passage("half", cosine=0.3, tokens=packed(words(boat, other), ["vessel", "cat"])),
            passage("none", cosine=0.3, tokens=packed(words(other), ["cat"])),
        ]
    )
    found = ranked("boat storm", of, encoding=query)
    assert keys(found) == ["both", "half", "none"]
    value = found[0].explanation.match["late_own"][1]
    assert value == pytest.approx(1.0, abs=0.12)
    off = ranked(
        "boat storm", of, encoding=query, ingredients=EVERYTHING.without("late_interaction")
    )
    assert len(set(scores(off).values())) == 1


@pytest.mark.parametrize("tokens", [b"", b"nonsense", b"T\x01\x00\x40\x00\x09abc", None])
def test_token_vectors_that_cannot_be_read_count_as_average(tokens):
    random = np.random.default_rng(2)
    states = words(*random.normal(size=(2, 64)))
    query = Encoding(vector=states[0], tokens=states, pieces=("boat", "storm"))
    of = pool(
        [
            passage("good", cosine=0.3, tokens=packed(states, ["boat", "storm"])),
            passage("bad", cosine=0.3, tokens=tokens),
            passage("poor", cosine=0.3, tokens=packed(-states, ["boat", "storm"])),
        ]
    )
    assert keys(ranked("boat storm", of, encoding=query)) == ["good", "bad", "poor"]


def test_whom_late_interaction_does_not_reach_never_passes_whom_it_does():
    random = np.random.default_rng(5)
    states = words(*random.normal(size=(2, 64)))
    query = Encoding(vector=states[0], tokens=states, pieces=("boat", "storm"))
    made = [
        passage(
            f"k{number:03}",
            cosine=0.9 - number / 200,
            tokens=packed(words(*random.normal(size=(3, 64))), ["x", "y", "z"]),
        )
        for number in range(120)
    ]
    found = ranked("boat storm", pool(made), encoding=query)
    reached = {f"k{number:03}" for number in range(weights.LATE_DEPTH)}
    assert set(keys(found)[: weights.LATE_DEPTH]) == reached


def test_each_ingredient_can_be_left_out():
    of = pool([passage("a", "red boat E1234", position=1, cosine=0.4), passage("b", position=2)])
    for name in Ingredients.names():
        left = EVERYTHING.without(name)
        assert getattr(left, name) is False
        found = ranked(
            "Ann's red E1234 yesterday", of, encoding=encoding(), speakers=["Ann"], ingredients=left
        )
        assert all(0.0 <= one.score <= 1.0 for one in found)
