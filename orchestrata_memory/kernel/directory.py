"""The directory of Volks that the configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestrata_memory.config.settings import GovernanceSettings


class ConfiguredDirectory:
    """Volks and roles of ``governance.volks``; they never change while the engine runs.

    Implements `VolkDirectory`.
    """

    def __init__(self, settings: GovernanceSettings) -> None:
        self._volks = MappingProxyType(
            {alias: frozenset(roles) for alias, roles in settings.volks.items()}
        )

    async def volks(self) -> Mapping[str, frozenset[str]]:
        """Every registered Volk's alias and its roles; cannot be changed."""
        return self._volks

    async def revision(self) -> int:
        """Always the same."""
        return 0
