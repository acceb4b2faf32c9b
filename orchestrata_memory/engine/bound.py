"""A handle on the engine for one caller."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from orchestrata_memory.models import MemoryContext, memory_context

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

P = ParamSpec("P")
R = TypeVar("R")


class BoundMemory:
    """The engine's operations for one fixed caller; the context variable need not be set."""

    def __init__(self, engine: MemoryEngine, context: MemoryContext) -> None:
        self.context = context
        self.store = self._bind(engine.store)
        self.retrieve = self._bind(engine.retrieve)
        self.search = self._bind(engine.search)
        self.summarize = self._bind(engine.summarize)
        self.update = self._bind(engine.update)
        self.delete = self._bind(engine.delete)
        self.migrate_to_cold = self._bind(engine.migrate_to_cold)
        self.find = self._bind(engine.find)
        self.related = self._bind(engine.related)
        self.share = self._bind(engine.share)
        self.unshare = self._bind(engine.unshare)
        self.delegate = self._bind(engine.delegate)
        self.revoke = self._bind(engine.revoke)
        self.store_summary = self._bind(engine.store_summary)
        self.lineage = self._bind(engine.lineage)
        self.audit_trail = self._bind(engine.audit_trail)
        self.promote = self._bind(engine.promote)
        self.inject = self._bind(engine.inject)

    def _bind(self, operation: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(operation)
        async def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            with memory_context(self.context):
                return await operation(*args, **kwargs)

        return bound
