"""The limits an operation's P95 has to meet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What is required, and what this project aims at, in milliseconds at P95.

    Attributes:
        required_ms: None where only the project's own aim exists.
    """

    required_ms: float | None
    ours_ms: float | None


ROWS: dict[str, Limit] = {
    "hot_store": Limit(required_ms=10, ours_ms=2),
    "hot_store_explicit_key": Limit(required_ms=None, ours_ms=None),
    "hot_retrieve": Limit(required_ms=5, ours_ms=1),
    "hot_search": Limit(required_ms=50, ours_ms=25),
    "cold_retrieve": Limit(required_ms=50, ours_ms=10),
    "cold_search": Limit(required_ms=200, ours_ms=60),
    "summarize": Limit(required_ms=None, ours_ms=100),
}
"""Every measured operation by its name in JSON, in the order of the table."""

STORES_PER_SECOND = 1000.0
"""Sustained stores a second, acknowledged, that this project aims at."""
