"""Saying that a tier does not answer, where an answer or a write is less than it seems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrata_memory.cli.answers import styled
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.interfaces import SystemEvent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrata_memory.engine.engine import MemoryEngine

_MODEL = "embedding"
"""The name of the model among what is missing."""


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


def nothing_found(missing: str | None) -> ExitCode:
    """What a search reports that found nothing: with something missing there may yet be something.

    Args:
        missing: As `degraded` tells it. A server may be back at the next try; a model that does not
            work wants mending.
    """
    if missing is None:
        return ExitCode.NOTHING
    servers, _ = _parts(missing)
    return ExitCode.UNAVAILABLE if servers else ExitCode.CONFIGURATION


def degraded_note(missing: str | None) -> list[RenderableType]:
    """What people are told of a search that could not ask everything."""
    if missing is None:
        return []
    servers, model = _parts(missing)
    told = []
    if servers:
        told.append(f"without {', '.join(servers)}, which did not answer: there may be more")
    if model:
        told.append(
            "the embedding model does not work, so this was found only by words: there may be "
            "more; doctor examines the model"
        )
    return [styled(text, "yellow") for text in told]


def _parts(missing: str) -> tuple[list[str], bool]:
    """Servers that did not answer, and whether the model did not work."""
    names = missing.split(", ")
    return [name for name in names if name != _MODEL], _MODEL in names
