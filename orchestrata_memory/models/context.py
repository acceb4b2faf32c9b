"""Who is calling: the memory context of the current task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from orchestrata_memory.errors import MemoryContextError

SYSTEM_VOLK = "SYS:MEMORY"
"""The alias under which the engine does its own work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryContext:
    """The caller of an operation.

    Attributes:
        volk_id: The Volk's alias, such as ``ENG:ALPHA``.
        session_id: Its open session.
        task_id: Its task, if any.
        project_id: Its project, if any.
        portfolio_id: Its portfolio, if any.
        provider: Model provider, picks the token counter: ``anthropic``, ``openai``, …
        model: The provider's model name.
        focus: What the Volk is about to do: the current context of a summary.
    """

    volk_id: str
    session_id: str
    task_id: str | None = None
    project_id: str | None = None
    portfolio_id: str | None = None
    provider: str | None = None
    model: str | None = None
    focus: str | None = None


_current: ContextVar[MemoryContext | None] = ContextVar("orchestrata_memory_context", default=None)


@contextmanager
def memory_context(context: MemoryContext) -> Iterator[MemoryContext]:
    """Make `context` the caller of every operation in the block, and in tasks it starts."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def current_context() -> MemoryContext:
    """The caller of the current task.

    Raises:
        MemoryContextError: None is set.
    """
    context = _current.get()
    if context is None:
        raise MemoryContextError(
            "no caller: run the operation inside `with memory_context(MemoryContext(...))`, "
            "or through `BoundMemory(engine, context)`"
        )
    return context
