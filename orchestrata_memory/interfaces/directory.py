"""The directory of Volks: who is registered, with which roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class VolkDirectory(Protocol):
    """Who is registered, with which roles. From configuration, or from the kernel."""

    async def volks(self) -> Mapping[str, frozenset[str]]:
        """Every registered Volk's alias and its roles, such as ``{"ENG:ALPHA": {"team_lead"}}``.

        Called at start and whenever `revision` changes.
        """
        ...

    async def revision(self) -> int:
        """A number that grows with every change; asked before each operation, so keep it cheap."""
        ...
