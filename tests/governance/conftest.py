"""Governances over the real Prolog, closed after the test."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.governance.prolog import PrologGovernance
from orchestrata_memory.governance.rulebook import RuleSource
from tests.governance.samples import VOLKS, ChangingDirectory, MovableClock


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def write_rules(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / f"rules{len(list(tmp_path.iterdir()))}.pl"
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.fixture
async def open_governance(clock, write_rules):
    """Makes an open governance: `own` is the text of a deployment's rule file."""
    async with AsyncExitStack() as stack:

        async def make(
            *, own: str | None = None, volks=VOLKS, directory=None, rules: RuleSource | None = None
        ) -> PrologGovernance:
            files = () if own is None else (write_rules(own),)
            settings = GovernanceSettings(rule_files=files)
            governance = PrologGovernance(
                settings,
                directory or ChangingDirectory(volks),
                clock=clock,
                rules=rules,
            )
            await governance.open()
            stack.push_async_callback(governance.close)
            return governance

        yield make


@pytest.fixture
async def governance(open_governance) -> PrologGovernance:
    return await open_governance()
