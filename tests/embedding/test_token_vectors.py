"""Packing token vectors into signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrata_memory.embedding import token_vectors
from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.vectors import unit_rows
from orchestrata_memory.errors import MemoryEmbeddingError

words = st.sampled_from(["cat", "the", "##s", ".", "Berlin", "42", "of", "日", "not", "!"])


def encoding_of(pieces: list[str], dimension: int, seed: int = 0) -> Encoding:
    rows = np.random.default_rng(seed).normal(size=(len(pieces), dimension)).astype(np.float32)
    return Encoding(
        vector=np.ones(dimension, dtype=np.float32) / np.sqrt(dimension, dtype=np.float32),
        tokens=unit_rows(rows),
        pieces=tuple(pieces),
    )


@settings(max_examples=200)
@given(
    pieces=st.lists(words, max_size=300),
    dimension=st.integers(2, 80),
    seed=st.integers(0, 99),
)
def test_signs_survive_and_packing_again_changes_nothing(pieces, dimension, seed):
    encoding = encoding_of(pieces, dimension, seed)

    packed = token_vectors.pack(encoding)
    rows = token_vectors.unpack(packed)

    kept = token_vectors.content_positions(pieces)[: token_vectors.MAX_TOKENS]
    assert rows.shape == (len(kept), dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.array_equal(rows > 0, encoding.tokens[kept] >= 0)
    again = Encoding(
        vector=encoding.vector, tokens=rows, pieces=tuple(pieces[index] for index in kept)
    )
    assert token_vectors.pack(again) == packed


def test_a_piece_takes_an_eighth_of_a_byte_a_dimension():
    packed = token_vectors.pack(encoding_of(["cat", "dog"], 384))

    assert len(packed) == 6 + 2 * 48
    assert token_vectors.dimension_and_count(packed) == (384, 2)


def test_function_words_and_punctuation_are_left_out():
    packed = token_vectors.pack(encoding_of(["the", "cat", "##s", ",", "of", "berlin", "."], 8))

    assert token_vectors.unpack(packed).shape == (3, 8)


def test_a_text_of_function_words_keeps_them():
    packed = token_vectors.pack(encoding_of(["to", "be", "or", "not", "to", "be"], 8))

    assert token_vectors.unpack(packed).shape == (6, 8)


def test_no_states_pack_to_nothing():
    encoding = Encoding(vector=np.ones(8, dtype=np.float32))

    assert token_vectors.unpack(token_vectors.pack(encoding)).shape == (0, 8)


@pytest.mark.parametrize(
    "packed", [b"", b"T", b"T\x02\x00\x08\x00\x00", b"T\x01\x00\x08\x00\x02\xff", b"x" * 30]
)
def test_what_cannot_be_read_is_an_error(packed):
    with pytest.raises(MemoryEmbeddingError):
        token_vectors.unpack(packed)


def test_signs_rank_as_the_states_do():
    """The best of many by the signs is the best by the states."""
    rng = np.random.default_rng(1)
    query = unit_rows(rng.normal(size=(4, 384)).astype(np.float32))
    near = unit_rows(query + 0.05 * rng.normal(size=(4, 384)).astype(np.float32))
    others = [unit_rows(rng.normal(size=(12, 384)).astype(np.float32)) for _ in range(50)]

    def score(states: np.ndarray) -> float:
        encoding = Encoding(vector=states[0], tokens=states, pieces=("x",) * len(states))
        rows = token_vectors.unpack(token_vectors.pack(encoding))
        return float((query @ rows.T).max(axis=1).sum())

    assert score(near) > max(map(score, others))
