"""Saying that a tier does not answer, where an answer or a write is less than it seems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrata_memory.cli.answers import styled
from orchestrata_memory.interfaces import SystemEvent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrata_memory.engine.engine import MemoryEngine


async def graph_is_away(engine: MemoryEngine) -> bool:
    """Whether what was just written waits in the outbox because the graph does not answer."""
    from orchestrata_memory.engine.health import graph_answers

    return not await graph_answers(engine.parts)


def waiting_note(*, waits: bool) -> list[RenderableType]:
    """What people are told of a write that waits."""
    if not waits:
        return []
    return [
        styled(
            "the graph does not answer: this is safe in Redis, waits in the outbox, "
            "and is written to the graph when that is back",
            "yellow",
        )
    ]


def degraded(searches: Sequence[SystemEvent]) -> str | None:
    """What did not answer in searches that were heard; None when all did."""
    return next(
        (event.payload["degraded"] for event in searches if event.payload["degraded"]), None
    )


def degraded_note(missing: str | None) -> list[RenderableType]:
    """What people are told of a search that could not ask everything."""
    if missing is None:
        return []
    return [styled(f"without {missing}, which did not answer: there may be more", "yellow")]
