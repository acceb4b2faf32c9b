"""Hooks that keep `traces` marks honest: three numbers a test at most, and what really passed.

With ``TRACE_RESULTS`` set, the outcome of every marked test is added to that file (JSON: test id
to ``requirements`` and ``outcome``), so that `tools/trace.py --results` can tell which
requirements a run has shown. A test passes there only when all of its variants did.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

MOST = 3
OUTCOMES = pytest.StashKey[dict[str, dict[str, object]]]()


def requirements_of(item: pytest.Item) -> list[str]:
    """The numbers a test carries, from itself, its class and its module."""
    return [str(number) for mark in item.iter_markers("traces") for number in mark.args]


def check_marks(items: list[pytest.Item]) -> None:
    """Refuse a test that claims to show too much."""
    greedy = [item.nodeid for item in items if len(set(requirements_of(item))) > MOST]
    if greedy:
        raise pytest.UsageError(f"more than {MOST} requirements on one test: {', '.join(greedy)}")


def record(item: pytest.Item, report: pytest.TestReport) -> None:
    """Keep the worst outcome of a marked test's phases and variants."""
    numbers = requirements_of(item)
    decisive = report.when == "call" or report.outcome != "passed"
    if not numbers or not decisive:
        return
    outcomes = item.config.stash.setdefault(OUTCOMES, {})
    outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
    name = item.nodeid.split("[", 1)[0]
    known = outcomes.setdefault(name, {"requirements": numbers, "outcome": outcome})
    if outcome != "passed":
        known["outcome"] = outcome


def write_results(config: pytest.Config) -> None:
    """Add this run's outcomes to the file ``TRACE_RESULTS`` names."""
    target = os.environ.get("TRACE_RESULTS")
    outcomes = config.stash.get(OUTCOMES, {})
    if not target or not outcomes:
        return
    path = Path(target)
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **outcomes}, indent=1, sort_keys=True))
