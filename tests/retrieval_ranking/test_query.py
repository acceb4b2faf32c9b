"""A query, understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.retrieval.query import MAX_NAMES, name_candidates, plan_query
from tests.retrieval_ranking.making import ANALYZER, NOW, encoding, keys, passage, pool, ranked


def plan(text, *speakers):
    return plan_query(text, ANALYZER, now=NOW, known_speakers=speakers)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What did Alice say?", "Alice"),
        ("did ENG:ALPHA deploy it", "ENG:ALPHA"),
        ("Where does Mary Ann Evans live?", "Mary Ann"),
        ("what did alice say", "alice"),
        ("Was sagte Jürgen?", "Jürgen"),
    ],
)
def test_names_are_proposed(text, name):
    assert name in name_candidates(text, ANALYZER)


def test_one_named_speaker_speaks_in_the_first_person():
    asked = plan("When did Alice's brother visit alice?", "Alice")
    assert asked.speaker == "Alice"
    assert asked.embedding_text == "When did my brother visit I?"
    assert asked.ranking_terms == ("brother", "visit")
    assert "alic" in asked.terms


def test_two_named_speakers_name_none():
    asked = plan("Did Alice meet Bob?", "Alice", "Bob")
    assert asked.speaker is None
    assert asked.embedding_text == "Did Alice meet Bob?"
    assert asked.ranking_terms == ("meet",)


def test_a_name_inside_a_word_is_no_name():
    assert plan("What about annual plans?", "Ann").speaker is None


def test_a_name_alone_is_still_a_query():
    assert plan("Alice", "Alice").ranking_terms == ("alic",)


@pytest.mark.parametrize("word", ["हिंदी", "বাংলা", "தமிழ்", "naïve", "l’été", "İstanbul"])
def test_a_word_with_marks_is_no_identifier(word):
    assert plan(word).identifiers == ()


def test_identifiers_are_told_from_words():
    asked = plan("Why does parse_header raise E1234 in 2023 for naïve users?")
    assert asked.identifiers == ("parse_header", "e1234")


@given(st.text(), st.lists(st.text(min_size=1), max_size=3))
def test_any_text_can_be_planned_and_ranked(text, speakers):
    assert len(name_candidates(text, ANALYZER)) <= MAX_NAMES
    asked = plan_query(text, ANALYZER, now=NOW, known_speakers=speakers)
    assert set(asked.ranking_terms) <= set(asked.terms)
    found = ranked(text, pool([passage("k", text, cosine=0.2)]), encoding=encoding())
    assert found[0].holds_term == bool(asked.terms)


@pytest.mark.traces("REQ-010-018")
def test_what_the_named_speaker_said_ranks_above_what_was_said_about_them():
    found = ranked(
        "What pets does Alice have?",
        pool(
            [
                passage("asked", "Alice, do you have pets?", speaker="Bob", cosine=0.5),
                passage("told", "I have two cats and no other pets", speaker="Alice", cosine=0.5),
            ]
        ),
        encoding=encoding(),
        speakers=["Alice"],
    )
    assert keys(found) == ["told", "asked"]
