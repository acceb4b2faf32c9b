"""The memory of an agent platform: Redis for open sessions, a graph for good.

    from orchestrata_memory import MemoryContext, memory_context, open_engine

    async with open_engine() as memory:
        with memory_context(MemoryContext(volk_id="ENG:ALPHA", session_id="s-1")):
            await memory.store("We chose Redis streams for the outbox.")

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrata_memory.config.loader import load_settings
    from orchestrata_memory.config.settings import MemoryEngineSettings
    from orchestrata_memory.container import (
        MemoryContainer,
        build_engine,
        open_engine,
        register_memory_engine,
    )
    from orchestrata_memory.engine.bound import BoundMemory
    from orchestrata_memory.engine.engine import MemoryEngine
    from orchestrata_memory.errors import MemoryEngineError
    from orchestrata_memory.interfaces import (
        ComponentType,
        CXPPacket,
        IComponent,
        IMemoryEngine,
        SystemEvent,
    )
    from orchestrata_memory.kernel import InProcessKernel
    from orchestrata_memory.models import (
        InjectionResult,
        InjectionStrategy,
        MemoryClassification,
        MemoryContext,
        MemoryEntry,
        MemoryScope,
        MemorySummary,
        SummarizationStrategy,
        memory_context,
    )

_HOMES = {
    "BoundMemory": "engine.bound",
    "CXPPacket": "interfaces",
    "ComponentType": "interfaces",
    "IComponent": "interfaces",
    "IMemoryEngine": "interfaces",
    "InProcessKernel": "kernel",
    "InjectionResult": "models",
    "InjectionStrategy": "models",
    "MemoryClassification": "models",
    "MemoryContainer": "container",
    "MemoryContext": "models",
    "MemoryEngine": "engine.engine",
    "MemoryEngineError": "errors",
    "MemoryEngineSettings": "config.settings",
    "MemoryEntry": "models",
    "MemoryScope": "models",
    "MemorySummary": "models",
    "SummarizationStrategy": "models",
    "SystemEvent": "interfaces",
    "build_engine": "container",
    "load_settings": "config.loader",
    "memory_context": "models",
    "open_engine": "container",
    "register_memory_engine": "container",
}

__all__ = [
    "BoundMemory",
    "CXPPacket",
    "ComponentType",
    "IComponent",
    "IMemoryEngine",
    "InProcessKernel",
    "InjectionResult",
    "InjectionStrategy",
    "MemoryClassification",
    "MemoryContainer",
    "MemoryContext",
    "MemoryEngine",
    "MemoryEngineError",
    "MemoryEngineSettings",
    "MemoryEntry",
    "MemoryScope",
    "MemorySummary",
    "SummarizationStrategy",
    "SystemEvent",
    "build_engine",
    "load_settings",
    "memory_context",
    "open_engine",
    "register_memory_engine",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
