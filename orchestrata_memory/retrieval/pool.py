"""From what the tiers found to the pool that is ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrata_memory.cold.base import TermStatistics
from orchestrata_memory.models import MemoryRecord, MemoryScope
from orchestrata_memory.retrieval.base import Found, Passage, Slot
from orchestrata_memory.retrieval.bm25 import information
from orchestrata_memory.retrieval.weights import KEYWORD_REACH


@dataclass(slots=True, kw_only=True)
class Gathered(Found):
    """Candidates of both tiers. Of a memory that both have, hot's copy is the one that stays.

    Attributes:
        exhausted: There is nothing more to find by looking further.
    """

    exhausted: bool = True


def combined(hot: TermStatistics | None, cold: TermStatistics | None) -> TermStatistics:
    """Statistics over both tiers.

    Cold holds nearly everything that hot holds, so the larger number stands for both.
    """
    if hot is None or cold is None:
        return hot or cold or TermStatistics(documents=0, average_length=0.0)
    larger = max(hot, cold, key=lambda one: one.documents)
    terms = {*hot.frequencies, *cold.frequencies}
    return TermStatistics(
        documents=larger.documents,
        average_length=larger.average_length,
        frequencies={
            term: max(hot.frequencies.get(term, 0), cold.frequencies.get(term, 0)) for term in terms
        },
    )


def counted(found: Found, terms: Sequence[str]) -> TermStatistics:
    """Statistics of what was found, stored summaries left out."""
    texts = [one.terms for one in found.passages.values() if not found.records[one.key].sources]
    held = Counter(term for text in texts for term in set(terms).intersection(text))
    return TermStatistics(
        documents=len(texts),
        average_length=fmean(map(len, texts)) if texts else 0.0,
        frequencies=dict.fromkeys(terms, 0) | held,
    )


def speakers_named(found: Found, names: Iterable[str]) -> set[str]:
    """Who of those that speak in what was found has one of the names, in any case."""
    folded = {name.casefold() for name in names}
    spoken = {one.speaker for one in found.passages.values()}
    return {speaker for speaker in spoken if speaker.casefold() in folded}


def foremost(
    found: Found, statistics: TermStatistics, terms: Sequence[str], count: int
) -> list[Passage]:
    """The `count` candidates with the most evidence of their own, words and meaning alike."""
    candidates = list(found.passages.values())
    if len(candidates) <= count:
        return candidates
    weights = {term: information(term, statistics) for term in terms}
    held = [
        sum(weights[term] for term in weights.keys() & set(passage.terms)) for passage in candidates
    ]
    near = [max(0.0, found.cosines.get(passage.key, 0.0)) for passage in candidates]
    most, nearest = max(held) or 1.0, max(near) or 1.0
    scores = [words / most + cosine / nearest for words, cosine in zip(held, near, strict=True)]
    order = sorted(range(len(candidates)), key=lambda place: -scores[place])
    return [candidates[place] for place in order[:count]]


def promising(
    candidates: Iterable[Passage],
    neighbours: Mapping[Slot, Passage],
    statistics: TermStatistics,
    terms: Sequence[str],
    count: int,
) -> set[str]:
    """Keys of the neighbours that stand beside the best keyword matches, `count` at most.

    An answer is often found by the words of its question.
    """
    weights = {term: information(term, statistics) for term in terms}
    scores: dict[str, float] = {}
    for passage in candidates:
        held = sum(weights[term] for term in weights.keys() & set(passage.terms))
        if not held:
            continue
        session, volk, position = passage.slot
        if position <= 0:
            continue
        for distance, share in KEYWORD_REACH.items():
            neighbour = neighbours.get((session, volk, position + distance))
            if neighbour is not None:
                scores[neighbour.key] = scores.get(neighbour.key, 0.0) + share * held
    return set(sorted(scores, key=lambda key: (-scores[key], key))[:count])


def in_scope(record: MemoryRecord, scope: MemoryScope) -> bool:
    """Whether a record passes every filter."""
    return (
        (scope.session_id is None or record.session_id == scope.session_id)
        and (scope.task_id is None or record.task_id == scope.task_id)
        and (scope.volk_id is None or record.volk_id == scope.volk_id)
        and (scope.project_id is None or record.project_id == scope.project_id)
        and (scope.portfolio_id is None or record.portfolio_id == scope.portfolio_id)
        and (scope.date_from is None or record.created_at >= scope.date_from)
        and (scope.date_to is None or record.created_at <= scope.date_to)
    )
