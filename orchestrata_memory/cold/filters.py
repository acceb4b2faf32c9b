"""Scope and readability as conditions of a query: fixed text, values as parameters.

The text depends only on which filters are given, so a server sees few different queries and keeps
their plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrata_memory.cold.base import Readable
from orchestrata_memory.cold.queries import CAREFUL, TRUSTING, filled
from orchestrata_memory.cold.rows import instant
from orchestrata_memory.models import MemoryScope

_READABLE = (
    "(m.volk_id = $reader OR m.classification IN ['shared', 'system'] "
    "OR any(volk IN $readers WHERE volk IN m.shared_with))"
)

_IDS = ("session_id", "task_id", "volk_id", "project_id", "portfolio_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on a memory ``m``.

    Attributes:
        scope: Condition text of the scope, ``true`` without one.
        readable: Condition text of readability, ``true`` without a pre-filter.
        parameters: Their values.
    """

    scope: str
    readable: str
    parameters: Mapping[str, Any]

    @property
    def is_scoped(self) -> bool:
        return self.scope != "true"

    @property
    def is_restricted(self) -> bool:
        return self.readable != "true"

    def fill(self, name: str, *, careful: bool = False) -> str:
        """The query of that name with these conditions.

        Args:
            name: Name of the query.
            careful: Look at each vector before it is compared.
        """
        sound = CAREFUL if careful else TRUSTING
        return filled(name, self.scope, self.readable, sound)


def filters_of(scope: MemoryScope, readable: Readable | None) -> Filters:
    """The conditions of a scope and a pre-filter.

    Traces: REQ-010-005, REQ-010-030
    """
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    for name in _IDS:
        value = getattr(scope, name)
        if value is not None:
            conditions.append(f"m.{name} = $scope_{name}")
            parameters[f"scope_{name}"] = value
    if scope.date_from is not None:
        conditions.append("m.created_at >= $scope_date_from")
        parameters["scope_date_from"] = instant(scope.date_from)
    if scope.date_to is not None:
        conditions.append("m.created_at <= $scope_date_to")
        parameters["scope_date_to"] = instant(scope.date_to)
    if readable is not None:
        parameters["reader"] = readable.volk_id
        parameters["readers"] = list(dict.fromkeys((readable.volk_id, *readable.grantors)))
    return Filters(
        scope=" AND ".join(conditions) or "true",
        readable="true" if readable is None else _READABLE,
        parameters=parameters,
    )


UNFILTERED = Filters(scope="true", readable="true", parameters={})
"""No conditions."""
