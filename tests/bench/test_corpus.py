"""Generated texts have the neighbours they are said to have."""

import itertools

import pytest

from orchestrata_memory.bench.corpus import (
    BASE,
    GROUP_SIZE,
    MAX_TEXTS,
    coordinates,
    group_count,
    queries,
    query,
    samples,
    text,
)
from orchestrata_memory.bench.words import SLOTS


def test_every_slot_has_as_many_distinct_words_as_the_array_needs():
    assert [len(set(slot)) for slot in SLOTS] == [BASE] * 4


def common(first, second):
    return sum(a == b for a, b in zip(first, second, strict=True))


def test_two_groups_share_at_most_one_word_while_they_are_few():
    groups = 10_201
    sampled = [coordinates(number, groups) for number in range(0, groups, 37)]

    assert max(common(a, b) for a, b in itertools.combinations(sampled, 2)) == 1


def test_two_of_very_many_groups_share_at_most_two_words():
    groups = group_count(MAX_TEXTS)
    sampled = [coordinates(number, groups) for number in (*range(400), *range(400, groups, 9001))]

    assert max(common(a, b) for a, b in itertools.combinations(sampled, 2)) == 2
    assert len(set(sampled)) == len(sampled)


def test_texts_are_distinct_and_always_the_same():
    first = samples(0, 5000, groups=500)

    assert len({sample.text for sample in first}) == 5000
    assert first == samples(0, 5000, groups=500)
    assert first != sorted(first, key=lambda sample: sample.group)
    assert {sample.group for sample in first} == set(range(500))


def test_every_text_and_query_of_a_group_names_its_four_words():
    words = [slot[n] for slot, n in zip(SLOTS, coordinates(42, 1000), strict=True)]

    for spoken in [*(text(42, n, 1000) for n in range(GROUP_SIZE)), query(42, 1000, 2)]:
        assert all(word in spoken for word in words)


def test_queries_are_distinct_and_of_known_groups():
    asked = list(queries(300, groups=1000, of=100))

    assert len({spoken for _, spoken in asked}) == 300
    assert {group for group, _ in asked} == set(range(100))
    with pytest.raises(ValueError):
        list(queries(401, groups=1000, of=100))


@pytest.mark.parametrize("count", [0, MAX_TEXTS + 1])
def test_no_more_texts_than_there_are(count):
    with pytest.raises(ValueError):
        group_count(count)
