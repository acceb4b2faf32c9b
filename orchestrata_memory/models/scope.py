"""Which memories a search or find looks at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScope:
    """Filters, all optional, all combined with AND.

    Attributes:
        session_id: The session of origin.
        task_id: The task the memory relates to.
        volk_id: The owner.
        project_id: The project.
        portfolio_id: The portfolio.
        date_from: Earliest `created_at`, inclusive, aware.
        date_to: Latest `created_at`, inclusive, aware.

    Traces: REQ-010-005
    """

    session_id: str | None = None
    task_id: str | None = None
    volk_id: str | None = None
    project_id: str | None = None
    portfolio_id: str | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None
