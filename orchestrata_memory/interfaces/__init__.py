"""Contracts of the platform that the engine implements or uses."""

from orchestrata_memory.interfaces.component import (
    ComponentHealth,
    ComponentType,
    HealthStatus,
    IComponent,
    PartHealth,
)
from orchestrata_memory.interfaces.cxp import CXPPacket
from orchestrata_memory.interfaces.directory import VolkDirectory
from orchestrata_memory.interfaces.engine import IMemoryEngine
from orchestrata_memory.interfaces.events import (
    EventBus,
    EventHandler,
    FactEmitter,
    Kernel,
    Severity,
    SystemEvent,
    Topic,
)

__all__ = [
    "CXPPacket",
    "ComponentHealth",
    "ComponentType",
    "EventBus",
    "EventHandler",
    "FactEmitter",
    "HealthStatus",
    "IComponent",
    "IMemoryEngine",
    "Kernel",
    "PartHealth",
    "Severity",
    "SystemEvent",
    "Topic",
    "VolkDirectory",
]
