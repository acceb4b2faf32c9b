"""Health of every part, gathered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from orchestrata_memory.engine.parts import Parts
from orchestrata_memory.engine.wiring import Wired
from orchestrata_memory.errors import MemoryEngineError
from orchestrata_memory.interfaces import ComponentHealth, HealthStatus, PartHealth

_PATIENCE_SECONDS = 5.0
_WORST_FIRST = (HealthStatus.UNHEALTHY, HealthStatus.DEGRADED, HealthStatus.HEALTHY)


async def gather_health(parts: Parts, operations: Wired) -> ComponentHealth:
    """Ask every part; one that fails or hangs is unhealthy.

    Traces: REQ-010-003
    """
    names = ("hot", "cold", "embedding", "governance", "audit")
    asked = (parts.hot, parts.cold, parts.embedder, parts.governance, parts.audit)
    answers = await asyncio.gather(*(_ask(part.health()) for part in asked))
    health = dict(zip(names, answers, strict=True))
    health["write_behind"] = await _worker_health(parts, operations)
    health["upkeep"] = _upkeep_health(operations)
    worst = next(s for s in _WORST_FIRST if any(part.status is s for part in health.values()))
    return ComponentHealth(status=worst, parts=health)


async def graph_answers(parts: Parts, patience: float = _PATIENCE_SECONDS) -> bool:
    """Whether the cold tier would take a write now; when not, writes wait in the outbox.

    Args:
        parts: Where the cold tier is.
        patience: Seconds after which no answer is one.
    """
    return (await _ask(parts.cold.health(), patience)).status is HealthStatus.HEALTHY


async def _ask(question: Awaitable[PartHealth], patience: float = _PATIENCE_SECONDS) -> PartHealth:
    try:
        async with asyncio.timeout(patience):
            return await question
    except TimeoutError:
        return PartHealth(status=HealthStatus.UNHEALTHY, message="no answer in time")
    except Exception as error:  # noqa: BLE001 - health never raises
        known = isinstance(error, MemoryEngineError)
        message = str(error) if known else type(error).__name__
        return PartHealth(status=HealthStatus.UNHEALTHY, message=message)


async def _worker_health(parts: Parts, operations: Wired) -> PartHealth:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            lag = await parts.hot.outbox_length()
    except (MemoryEngineError, TimeoutError):
        return PartHealth(status=HealthStatus.UNHEALTHY, message="the outbox cannot be read")
    problem = operations.worker.last_error
    status = HealthStatus.DEGRADED if problem else HealthStatus.HEALTHY
    return PartHealth(status=status, message=problem or "", details={"lag_records": lag})


def _upkeep_health(operations: Wired) -> PartHealth:
    problems = operations.upkeep.problems()
    return PartHealth(
        status=HealthStatus.DEGRADED if problems else HealthStatus.HEALTHY,
        message="; ".join(f"{name}: {problem}" for name, problem in problems.items()),
    )
