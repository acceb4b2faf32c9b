"""Generated texts whose neighbours are known.

Texts come in groups of ten: ten ways to speak of one incident, which four words name (a part, a
symptom, a place, a cause). A query of a group names the same four words in a way of its own, so
its ten nearest texts are those of its group. The words of a group are the coordinates of an
orthogonal array, so two groups have at most one word in common up to 10,201 groups (102,010
texts), and at most two of the four beyond.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrata_memory.bench.words import SLOTS

BASE = 101
GROUP_SIZE = 10
MAX_TEXTS = BASE**3 * GROUP_SIZE

_TEXTS = (
    "During the night shift in {place} the {part} showed a {symptom}; we traced it to the {cause}.",
    "Root cause of the {symptom} on the {part}: a faulty {cause} at the {place} site.",
    "{place} reported that their {part} suffers from {symptom} whenever the {cause} is attached.",
    "Decision: replace the {cause} in {place}, because it makes the {part} fail with {symptom}.",
    "The {part} team confirmed the {symptom} in {place} and blames the {cause}.",
    "Post-mortem {place}: {symptom} of the {part} began two minutes after the {cause} was swapped.",
    "A customer near {place} lost an hour to {symptom} as the {part} shares power with a {cause}.",
    "Removing the {cause} made the {symptom} vanish, so the {part} in {place} is healthy again.",
    "Monitoring in {place} must alert on {symptom} of the {part} before the {cause} gives way.",
    "Runbook, {place}: on {symptom} unplug the {cause}, restart the {part}, then call the owner.",
)
_QUERIES = (
    "what did we learn about {symptom} of the {part} in {place} and the {cause}",
    "{place} incident: {part}, {symptom}, {cause}",
    "who looked into the {cause} causing {symptom} on the {part} at {place}",
    "how does the {cause} lead to {symptom} for the {part} of {place}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One generated text and the group it belongs to."""

    group: int
    text: str


def coordinates(group: int, groups: int) -> tuple[int, int, int, int]:
    """The four word numbers of a group among `groups`."""
    first, second, third = group % BASE, group // BASE % BASE, group // BASE**2
    if groups <= BASE**2:
        return first, second, (first + second) % BASE, (first + 2 * second) % BASE
    return first, second, third, (first + second + third) % BASE


def _words(group: int, groups: int) -> dict[str, str]:
    part, symptom, place, cause = (
        slot[number] for slot, number in zip(SLOTS, coordinates(group, groups), strict=True)
    )
    return {"part": part, "symptom": symptom, "place": place, "cause": cause}


def text(group: int, variant: int, groups: int) -> str:
    """One of the ten texts of a group; `variant` is 0 to 9."""
    return _TEXTS[variant].format(**_words(group, groups))


def query(group: int, groups: int, wording: int = 0) -> str:
    """A question about a group."""
    return _QUERIES[wording % len(_QUERIES)].format(**_words(group, groups))


def group_count(texts: int) -> int:
    """How many groups `texts` texts make.

    Raises:
        ValueError: More than there can be.
    """
    if not 0 < texts <= MAX_TEXTS:
        raise ValueError(f"1 to {MAX_TEXTS} texts can be generated, not {texts}")
    return -(-texts // GROUP_SIZE)


def samples(start: int, stop: int, *, groups: int, seed: int = 7) -> list[Sample]:
    """The distinct texts `start` to `stop` of `groups` groups, shuffled with a fixed seed."""
    numbers = list(range(start, stop))
    random.Random(seed).shuffle(numbers)  # noqa: S311 - a shuffle, not a secret
    return [
        Sample(
            group=number // GROUP_SIZE,
            text=text(number // GROUP_SIZE, number % GROUP_SIZE, groups),
        )
        for number in numbers
    ]


def queries(count: int, *, groups: int, of: int, seed: int = 11) -> Iterator[tuple[int, str]]:
    """`count` distinct queries about the first `of` of `groups` groups, each with its group.

    Raises:
        ValueError: More than there can be.
    """
    if count > of * len(_QUERIES):
        raise ValueError(f"{of} groups give at most {of * len(_QUERIES)} queries, not {count}")
    order = list(range(of))
    random.Random(seed).shuffle(order)  # noqa: S311 - a shuffle, not a secret
    for number in range(count):
        group = order[number % of]
        yield group, query(group, groups, number // of)
