"""The directory of Volks that the configuration names."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrata_memory.config.settings import GovernanceSettings


class ConfiguredDirectory:
    """Volks and roles from ``governance.volks``; they never change while the engine runs."""

    def __init__(self, settings: GovernanceSettings) -> None:
        self._volks = {alias: frozenset(roles) for alias, roles in settings.volks.items()}

    async def volks(self) -> Mapping[str, frozenset[str]]:
        return self._volks

    async def revision(self) -> int:
        return 0
