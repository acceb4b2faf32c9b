"""The words of the domain: values only, no I/O."""

from orchestrata_memory.models.audit import AuditRecord
from orchestrata_memory.models.context import (
    SYSTEM_VOLK,
    MemoryContext,
    current_context,
    memory_context,
)
from orchestrata_memory.models.delegation import Delegation
from orchestrata_memory.models.entry import MemoryClassification, MemoryEntry
from orchestrata_memory.models.explanation import ScoreExplanation
from orchestrata_memory.models.record import KeyState, MemoryRecord
from orchestrata_memory.models.scope import MemoryScope
from orchestrata_memory.models.summary import (
    InjectionResult,
    InjectionStrategy,
    MemorySummary,
    SummarizationStrategy,
)

__all__ = [
    "SYSTEM_VOLK",
    "AuditRecord",
    "Delegation",
    "InjectionResult",
    "InjectionStrategy",
    "KeyState",
    "MemoryClassification",
    "MemoryContext",
    "MemoryEntry",
    "MemoryRecord",
    "MemoryScope",
    "MemorySummary",
    "ScoreExplanation",
    "SummarizationStrategy",
    "current_context",
    "memory_context",
]
