"""The identity and the classification of a stored summary."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from orchestrata_memory.models import MemoryClassification

_NARROW_TO_WIDE = (
    MemoryClassification.PRIVATE,
    MemoryClassification.SHARED,
    MemoryClassification.SYSTEM,
)


def summary_key(
    *,
    owner: str,
    sources: Sequence[tuple[str, int]],
    strategy: str,
    budget: int,
    counter: str,
    focus: str | None,
    method: str = "extractive",
) -> str:
    """The key of the summary made of these things; the same things give the same key.

    Args:
        owner: Who stores it.
        sources: Key and version of each source, in any order.
        strategy: Strategy it was made with.
        budget: Its ``max_tokens``.
        counter: Name of the token counter.
        focus: The current context it was made for, or None.
        method: ``extractive`` or ``abstractive``.

    Returns:
        ``summary-`` and a SHA-256 in hex, so nothing of the parts can be read from it.

    Traces: REQ-010-035
    """
    identity = json.dumps(
        [owner, sorted(sources), str(strategy), budget, counter, focus, method],
        ensure_ascii=True,
        separators=(",", ":"),
    )
    return f"summary-{hashlib.sha256(identity.encode()).hexdigest()}"


def narrowest(classifications: Iterable[MemoryClassification]) -> MemoryClassification:
    """The narrowest of the classifications; private where there are none.

    Traces: REQ-010-049
    """
    return min(classifications, key=_NARROW_TO_WIDE.index, default=MemoryClassification.PRIVATE)
