"""Where sentences end."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrata_memory.summaries.sentences import LONGEST_SENTENCE, split


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith saw e.g. Mrs. Jones. He left.", ["Dr. Smith saw e.g. Mrs. Jones.", "He left."]),
        ("J. R. R. Tolkien wrote. We read.", ["J. R. R. Tolkien wrote.", "We read."]),
        ("It costs 3.14 euros. See v2.0.1 too.", ["It costs 3.14 euros.", "See v2.0.1 too."]),
        ('He said "stop." She did.', ['He said "stop."', "She did."]),
        ("これは文です。次の文！最後？", ["これは文です。", "次の文！", "最後？"]),
        ("「はい。」と言った。", ["「はい。」", "と言った。"]),
        ("- first\n- second\n\n- third", ["- first", "- second", "- third"]),
        ("Wait... what? Yes…", ["Wait... what?", "Yes…"]),
        ("see example.com/a.b for more", ["see example.com/a.b for more"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_say(text, sentences):
    assert [sentence.text for sentence in split(text)] == sentences


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            ["A b", ". ", "\n", "\n\n", "。", "! ", "x" * 90, " ", "e.g. ", "…", '"', "日"]
        )
    ).map("".join)
)
def test_no_word_is_lost_and_none_is_added(text):
    sentences = split(text)

    joined = "".join(sentence.gap + sentence.text for sentence in sentences)
    assert regex.sub(r"\s", "", joined) == regex.sub(r"\s", "", text)
    assert all(sentence.text == sentence.text.strip() != "" for sentence in sentences)
    assert all(len(sentence.text) <= LONGEST_SENTENCE for sentence in sentences)
    assert all(sentence.gap.strip() == "" for sentence in sentences)


def test_code_keeps_its_lines():
    code = "def f(x):\n    return x\n\n\nprint(f(1))"

    assert "".join(s.gap + s.text for s in split(code)) == "def f(x):\n    return x\nprint(f(1))"
