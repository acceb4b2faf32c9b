"""What every component of the platform is: a lifecycle and a health report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ComponentType(StrEnum):
    """Names under which components stand in a kernel's container.

    Traces: REQ-010-002
    """

    MEMORY_ENGINE = "memory_engine"


class HealthStatus(StrEnum):
    """``degraded`` works with something missing; ``unhealthy`` refuses part of its work."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    """Health of one part.

    Attributes:
        status: See `HealthStatus`.
        message: What is wrong and what to do, or an empty string.
        details: Numbers and names, such as ``lag_records``, ``lag_seconds``, ``server``.
    """

    status: HealthStatus
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentHealth:
    """Health of a component: the worst of its parts, and each part by name."""

    status: HealthStatus
    parts: dict[str, PartHealth] = field(default_factory=dict)


class IComponent(ABC):
    """A component with a lifecycle: initialize, start, stop.

    The order is enforced; each call is idempotent.

    Traces: REQ-010-003
    """

    @abstractmethod
    async def initialize(self) -> None:
        """Connect, check and prepare every part, and subscribe to the bus."""

    @abstractmethod
    async def start(self) -> None:
        """Start the background work; operations are accepted from here on."""

    @abstractmethod
    async def stop(self) -> None:
        """Refuse new operations, drain what is accepted, stop the background work, disconnect."""

    @abstractmethod
    async def get_health(self) -> ComponentHealth:
        """Ask every part; never raises, answers before `start` and after `stop` too."""
