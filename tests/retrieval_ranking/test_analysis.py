"""Text becomes terms."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.retrieval.analysis import (
    MAX_QUERY_TERMS,
    MAX_TERM_CHARACTERS,
    TextAnalyzer,
)

ENGLISH = TextAnalyzer()


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Where did she go?", "They went home"),
        ("running children", "the child runs"),
        ("CAFE naive", "the naïve café"),
        ("ﬁle", "a file"),
        ("What was bought?", "buying groceries"),
        ("don't worry", "Worry not, he doesn’t"),
    ],
)
def test_forms_of_a_word_meet(asked, text):
    assert set(ENGLISH.query_terms(asked)) & set(ENGLISH.terms(text))


@pytest.mark.traces("REQ-010-016")
@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("parse_http_header", ["http", "header"]),
        ("parseHttpHeader", ["http", "header"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("src/retrieval/ranking.py", ["src", "retrieval", "py"]),
        ("ERR_CONN_RESET", ["err", "conn", "reset"]),
        ("E1234", ["1234"]),
        ("HTTP/2", ["http"]),
        ("v1.22.3", ["22"]),
        ("bob.smith@example.com", ["bob", "smith", "example"]),
        ("std::vector", ["vector"]),
        ("2023-05-07", ["2023", "05"]),
        ("ENG:ALPHA", ["alpha"]),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(identifier, parts):
    terms = ENGLISH.terms(f"It says {identifier}, again.")
    assert identifier.lower() in terms
    for part in parts:
        assert set(ENGLISH.query_terms(part)) <= set(terms)


@pytest.mark.parametrize("name", ["C++", "C#", "3.14", "1,000", "iPhone", "x86-64"])
def test_unusual_names_find_themselves(name):
    asked = ENGLISH.query_terms(name)
    assert asked
    assert set(asked) <= set(ENGLISH.terms(f"about {name} today"))


@pytest.mark.parametrize(
    ("text", "substrings"),
    [
        ("東京都に住んでいます", ["東京", "京都", "住んで", "都"]),
        ("我们在北京开会", ["北京", "开会", "会"]),
        ("한국어를 배운다", ["한국", "국어", "배운다"]),
        ("ฉันรักภาษาไทย", ["ภาษา", "ไทย"]),
        ("设置timeout为30秒", ["timeout", "30", "设置"]),
    ],
)
def test_scripts_without_blanks_are_found_by_any_part(text, substrings):
    terms = set(ENGLISH.terms(text))
    for substring in substrings:
        asked = ENGLISH.query_terms(substring)
        assert asked
        assert set(asked) <= terms, substring


def test_a_query_drops_question_words_but_not_all_it_has():
    assert ENGLISH.query_terms("When did the server crash?") == ("server", "crash")
    assert ENGLISH.query_terms("who") == ("who",)
    assert "who" in ENGLISH.terms("who")
    assert ENGLISH.query_terms("to be or not to be, is it?") == ()


def test_of_a_pasted_text_the_terms_it_repeats_are_asked():
    once = [f"w{number}q" for number in range(3_000)]
    pasted = " ".join([*once[:300], "harbour", *once[300:], "beyond the end of what is read"])
    terms = ENGLISH.query_terms(pasted[:4_000] + " harbour " + pasted[4_000:])
    assert len(terms) == MAX_QUERY_TERMS
    assert "harbour" in terms
    assert terms[0] == "w0q"
    assert not set(ENGLISH.terms("beyond the end")) & set(terms)


def test_another_language_is_stemmed_by_its_own_rules():
    german = TextAnalyzer("german")
    assert set(german.query_terms("Wer hat die Häuser gekauft?")) & set(german.terms("ein Haus"))
    assert "der" not in german.terms("der Hund")
    assert TextAnalyzer("arabic").terms("الكتاب الجديد")


@pytest.mark.parametrize(
    ("language", "stored", "asked"),
    [
        ("hindi", "किताबें मेज़ पर हैं", "किताब"),
        ("tamil", "புத்தகங்கள்", "புத்தகம்"),
        ("turkish", "İSTANBUL'DAN geldik", "istanbul"),
        ("turkish", "İŞLER bitti", "işler"),
        ("english", "हिंदी में लिखा", "हिंदी"),
    ],
)
def test_words_with_vowel_signs_are_words_and_stemmed(language, stored, asked):
    analyzer = TextAnalyzer(language)
    assert set(analyzer.query_terms(asked)) <= set(analyzer.terms(stored))
    assert len(analyzer.query_terms(asked)) == 1


def test_an_unknown_language_is_named():
    with pytest.raises(MemoryConfigurationError, match="klingon"):
        TextAnalyzer("klingon")


@given(st.text())
def test_any_text_gives_terms_that_can_be_joined_by_blanks(text):
    for terms in (ENGLISH.terms(text), list(ENGLISH.query_terms(text))):
        assert " ".join(terms).split() == terms
        for term in terms:
            assert 0 < len(term) <= MAX_TERM_CHARACTERS
            kinds = {unicodedata.category(letter) for letter in term}
            assert kinds.isdisjoint({"Cc", "Cs", "Zs", "Zl", "Zp"})


@given(st.text())
def test_a_text_finds_itself(text):
    assert set(ENGLISH.query_terms(text)) <= set(ENGLISH.terms(text))


@given(st.text())
def test_letter_case_and_composition_of_plain_words_do_not_matter(text):
    words = " ".join(word for word in text.split() if word.isalpha()).lower()
    assert ENGLISH.terms(unicodedata.normalize("NFD", words)) == ENGLISH.terms(words)


@given(
    st.lists(st.sampled_from(["The", "cat", "sat.", "On", "3", "mats!", "E12", "东京"])),
    st.lists(st.just("dog")),
)
def test_terms_of_a_joined_text_are_the_terms_of_its_words(first, second):
    whole = ENGLISH.terms(" ".join(first + second))
    assert whole == [term for word in first + second for term in ENGLISH.terms(word)]


def test_emoji_are_terms():
    analyzer = TextAnalyzer()
    assert "🎉" in analyzer.terms("shipped it 🎉 today")
    assert analyzer.query_terms("🎉") == ("🎉",)
    assert analyzer.query_terms("✔️") == analyzer.query_terms("✔")
