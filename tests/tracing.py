"""Hooks that keep `traces` marks honest: three numbers a test at most, and what really passed.

With ``TRACE_RESULTS`` set, the outcome of every marked test is added to that file (JSON: test id
to ``requirements`` and ``outcome``), so that `tools/trace.py --results` can tell which
requirements a run has shown. A test passes there only when all of its variants did.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

MOST = 3
_PROPERTY = "traces"


def requirements_of(item: pytest.Item) -> list[str]:
    """The numbers a test carries, from itself, its class and its module."""
    return [str(number) for mark in item.iter_markers("traces") for number in mark.args]


def check_marks(items: list[pytest.Item]) -> None:
    """Refuse a test that claims to show too much."""
    greedy = [item.nodeid for item in items if len(set(requirements_of(item))) > MOST]
    if greedy:
        raise pytest.UsageError(f"more than {MOST} requirements on one test: {', '.join(greedy)}")


def pass_on(item: pytest.Item) -> None:
    """Let a test's reports carry its numbers, from the process that runs it to the one that
    gathers the outcomes."""
    numbers = requirements_of(item)
    if numbers:
        item.user_properties.append((_PROPERTY, numbers))


class Outcomes:
    """Keeps the outcomes of marked tests: a plugin of the process that gathers them."""

    def __init__(self) -> None:
        self._outcomes: dict[str, dict[str, object]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of a marked test's phases and variants."""
        numbers = dict(report.user_properties).get(_PROPERTY)
        decisive = report.when == "call" or report.outcome != "passed"
        if not numbers or not decisive:
            return
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        name = report.nodeid.split("[", 1)[0]
        known = self._outcomes.setdefault(name, {"requirements": numbers, "outcome": outcome})
        if outcome != "passed":
            known["outcome"] = outcome

    def pytest_sessionfinish(self) -> None:
        """Add this run's outcomes to the file ``TRACE_RESULTS`` names, the worst of each test.

        Runs side by side may do so at the same time.
        """
        target = os.environ.get("TRACE_RESULTS")
        if not target or not self._outcomes:
            return
        with Path(target).open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            together = json.loads(file.read() or "{}")
            for name, known in self._outcomes.items():
                if together.get(name, known)["outcome"] == "passed":
                    together[name] = known
            file.truncate(0)
            json.dump(together, file, indent=1, sort_keys=True)
