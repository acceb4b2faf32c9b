"""What differs between the graphs that speak Cypher over Bolt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Row = Sequence[Any]
"""Values of one result row."""

RunCypher = Callable[[str, Mapping[str, Any]], Awaitable[list[Row]]]
"""Runs one statement of its own transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchIndexes:
    """Names under which the search procedures know the indexes."""

    vector: str
    terms: str


class Dialect(Protocol):
    """One server's ways; holds no connection."""

    @property
    def name(self) -> str:
        """``neo4j`` or ``arcadedb``."""
        ...

    @property
    def default_database(self) -> str:
        """Database used when none is configured."""
        ...

    async def prepare(self, run: RunCypher, *, database: str, dimension: int) -> SearchIndexes:
        """Create constraints and indexes where they are missing, and wait until they serve.

        Raises:
            MemoryConfigurationError: A present index does not fit; says the way out.
        """
        ...

    def is_collision(self, error: BaseException) -> bool:
        """The transaction met another one and did nothing; it may be run again at once."""
        ...
