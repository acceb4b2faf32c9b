"""How something that takes long says how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Call it with the number of steps just done."""


class Reporter(Protocol):
    """Shows stages and their progress."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Advance]:
        """Begin a stage of `total` steps; it ends with the block."""
        ...


def ignore(steps: int) -> None:
    """Show no progress."""
    del steps


class Silent:
    """Shows nothing."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """See `Reporter.stage`."""
        del name, total
        yield ignore
