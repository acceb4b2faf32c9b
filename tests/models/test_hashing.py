"""The hash by which a text is known again."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.models.hashing import content_hash


@given(st.text(st.characters(codec="utf-8")))
def test_it_is_the_hash_of_the_texts_utf_8(text: str) -> None:
    assert content_hash(text) == hashlib.sha256(text.encode()).hexdigest()


def test_what_no_utf_8_can_carry_has_one_too() -> None:
    assert len({content_hash(text) for text in ("\ud800", "\udfff", "?", "\ufffd", "")}) == 5
