"""Summaries without a language model: the most wanted sentences, as they were stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.models import InjectionStrategy, MemorySummary, SummarizationStrategy
from orchestrata_memory.summaries.ending import fill_the_end, is_full
from orchestrata_memory.summaries.layout import BARE_BELOW, Layout
from orchestrata_memory.summaries.ordering import ordered
from orchestrata_memory.summaries.packing import Packer
from orchestrata_memory.summaries.sources import SourceMemory
from orchestrata_memory.tokens.base import ITokenCounter

Strategy = SummarizationStrategy | InjectionStrategy

_SHARES = 4
"""One source gives at most this part of the budget before every other had its turn."""


def summarize(
    sources: Sequence[SourceMemory],
    *,
    strategy: Strategy,
    counter: ITokenCounter,
    max_tokens: int,
    now: datetime,
    focus: NDArray[np.float32] | None = None,
    half_life_days: float = 30.0,
    reader: str | None = None,
) -> MemorySummary:
    """The most wanted of what the sources say, within the budget; see `layout` for its form.

    Pure and synchronous: run it in a thread. The same arguments give the same summary.

    Args:
        sources: Everything the caller may read of the context, each key once, in any order.
        strategy: What to draw on first; ``hybrid`` gives relevance and recency half each.
        counter: Counts `max_tokens`; the result never exceeds them by it.
        max_tokens: The budget, at least 1.
        now: When it is made; aware.
        focus: Unit vector of the current context, or None without one.
        half_life_days: Age at which recency counts half, as in a search.
        reader: The Volk that will read it; what others said carries their name.

    Returns:
        Its `source_keys` are exactly the memories that gave at least one word, in order of first
        use; `omitted` counts those that had more to say than repetition and were left out.

    Traces: REQ-010-021, REQ-010-022, REQ-010-023
    """
    layout = Layout(bare=max_tokens < BARE_BELOW, reader=reader)
    packer = Packer(sources, counter=counter, max_tokens=max_tokens, layout=layout)
    by = partial(ordered, sources, focus=focus, now=now, half_life_days=half_life_days)
    order = _pack(packer, by, strategy)
    if not is_full(packer.tokens, max_tokens):
        _use_the_rest(packer, order, counter, layout)
    used = list(dict.fromkeys(piece.source for piece in packer.pieces))
    drawn_on = set(used)
    return MemorySummary(
        content=packer.text,
        token_count=packer.tokens,
        source_count=len(used),
        source_keys=tuple(sources[index].record.key for index in used),
        strategy=strategy,
        created_at=now,
        counter=counter.name,
        omitted=sum(1 for index in order if index not in drawn_on and packer.has_more(index)),
    )


def _pack(
    packer: Packer, by: Callable[[SummarizationStrategy], list[int]], strategy: Strategy
) -> list[int]:
    """Fill the budget; the order in which the sources were wanted, which `by` gives."""
    budget = packer.max_tokens
    share = budget // _SHARES if budget >= BARE_BELOW else None
    if strategy == InjectionStrategy.HYBRID:
        relevant = by(SummarizationStrategy.RELEVANCE)
        recent = by(SummarizationStrategy.RECENCY)
        packer.fill(relevant, budget=budget // 2, share=share)
        packer.turned_away.clear()
        packer.fill(recent, budget=budget, share=share)
        order = relevant
    else:
        order = by(SummarizationStrategy(strategy.value))
        packer.fill(order, budget=budget, share=share)
    return order


def _use_the_rest(
    packer: Packer, order: Sequence[int], counter: ITokenCounter, layout: Layout
) -> None:
    """Whatever still has room: longer sources, then part of a sentence, at last what repeats."""
    if not packer.turned_away:
        packer.fill(order, budget=packer.max_tokens)
    repeats = packer.tokens + packer.repeats_tokens(order) > packer.max_tokens
    full = fill_the_end(packer, order, counter=counter, layout=layout, settle=not repeats)
    if repeats and not full:
        packer.admit_repeats()
        packer.fill(order, budget=packer.max_tokens)
        fill_the_end(packer, order, counter=counter, layout=layout, settle=True)
