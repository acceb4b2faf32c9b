"""Requirement → code → tests.

Code names a requirement in a docstring (``Traces: REQ-010-001, REQ-010-002``), a test by
``@pytest.mark.traces("REQ-010-001")``. Both are read without running anything.

    trace.py                  print the table and what is missing
    trace.py --write          also write it to the specs
    trace.py --check          fail when the written table is stale, or a requirement lacks code or
                              a test
    trace.py --results FILE   fail when a requirement was shown by no test that passed in a run
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "orchestrata_memory"
SPECS = ROOT / "specs" / "010-memory-engine"
TABLE = SPECS / "traceability.md"
REQUIREMENTS = tuple(f"REQ-010-{number:03}" for number in range(1, 56))
MOST_A_TEST = 3
UNSURE = frozenset({"skip", "skipif", "xfail"})
"""A test with one of these may not run, so it shows nothing."""

_TRACES = re.compile(r"Traces:((?:[\s,]*REQ-010-\d{3})+)")
_NUMBER = re.compile(r"REQ-010-\d{3}")
_TITLE = re.compile(r"^\|\s*(?:REQ-010-)?(\d{3})\s*\|\s*([^|]+?)\s*\|", re.MULTILINE)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Trace:
    """What names each requirement.

    Attributes:
        problems: Marks that cannot be right.
    """

    code: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    tests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)

    @property
    def incomplete(self) -> list[str]:
        """Requirements without code or without a test, in words."""
        return [
            f"{number}: no {what}"
            for number in REQUIREMENTS
            for what, found in (("code", self.code), ("test", self.tests))
            if not found.get(number)
        ]


def collect(root: Path = ROOT) -> Trace:
    """Read the package and its tests."""
    trace = Trace()
    for path in sorted((root / PACKAGE).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for where, number in code_traces(ast.parse(path.read_text(encoding="utf-8"))):
            _note(trace, trace.code, number, f"{name}{where}")
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for where, numbers in test_traces(ast.parse(path.read_text(encoding="utf-8"))):
            if len(numbers) > MOST_A_TEST:
                trace.problems.append(f"{name}::{where} carries more than {MOST_A_TEST} numbers")
            for number in numbers:
                _note(trace, trace.tests, number, f"{name}::{where}")
    return trace


def code_traces(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(``::Class.method`` or nothing for the module, requirement) of each docstring."""
    for number in _numbers_in(ast.get_docstring(tree)):
        yield "", number
    for where, node in _definitions(tree, ""):
        for number in _numbers_in(ast.get_docstring(node)):
            yield f"::{where}", number


def test_traces(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """(test, requirements) of each test that surely runs."""
    module = [
        mark
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        )
        for mark in _marks(_items(node.value))
    ]
    yield from _tests(tree.body, "", module)


def _tests(
    body: list[ast.stmt], prefix: str, outer: list[tuple[str, list[str]]]
) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if not isinstance(node, Definition):
            continue
        marks = outer + _marks(node.decorator_list)
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{prefix}{node.name}::", marks)
        elif node.name.startswith("test") and not UNSURE & {name for name, _ in marks}:
            numbers = [number for name, args in marks if name == "traces" for number in args]
            if numbers:
                yield prefix + node.name, list(dict.fromkeys(numbers))


def _marks(expressions: list[ast.expr]) -> list[tuple[str, list[str]]]:
    """Name and texts of each ``pytest.mark.NAME(...)``."""
    found = []
    for expression in expressions:
        called = expression.func if isinstance(expression, ast.Call) else expression
        if isinstance(called, ast.Attribute) and "mark." in ast.unparse(called):
            args = expression.args if isinstance(expression, ast.Call) else []
            texts = [str(arg.value) for arg in args if isinstance(arg, ast.Constant)]
            found.append((called.attr, texts))
    return found


def _items(value: ast.expr) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, ast.List | ast.Tuple) else [value]


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            where = f"{prefix}{child.name}"
            yield where, child
            yield from _definitions(child, f"{where}.")


def _numbers_in(docstring: str | None) -> list[str]:
    found = [_NUMBER.findall(match) for match in _TRACES.findall(docstring or "")]
    return list(dict.fromkeys(number for numbers in found for number in numbers))


def _note(trace: Trace, table: dict[str, list[str]], number: str, where: str) -> None:
    if number in REQUIREMENTS:
        table[number].append(where)
    else:
        trace.problems.append(f"{where}: there is no {number}")


def titles() -> dict[str, str]:
    """Requirement to what it says, from the tables of the specs."""
    found: dict[str, str] = {}
    for path in sorted(SPECS.rglob("*.md")):
        if path != TABLE:
            for number, title in _TITLE.findall(path.read_text(encoding="utf-8")):
                found.setdefault(f"REQ-010-{number}", title)
    return found


def table(trace: Trace) -> str:
    """The table as Markdown."""
    named = titles()
    lines = [
        "# Requirement → code → tests",
        "",
        "Made by `make trace`; `make trace-check` fails when it is stale. Code is found by the",
        "`Traces:` lines of docstrings, tests by their `traces` marks.",
        "",
        "| requirement | what | code | tests |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {number} | {named.get(number, '')} | {_cell(trace.code.get(number, []))} "
        f"| {_cell(trace.tests.get(number, []))} |"
        for number in REQUIREMENTS
    ]
    return "\n".join([*lines, "", summary(trace), ""])


def summary(trace: Trace) -> str:
    """How many requirements have both."""
    whole = sum(bool(trace.code.get(n)) and bool(trace.tests.get(n)) for n in REQUIREMENTS)
    return f"{whole} of {len(REQUIREMENTS)} requirements have code and tests."


def _cell(places: list[str]) -> str:
    return "<br>".join(f"`{place}`" for place in places)


def check(trace: Trace) -> list[str]:
    """What is wrong with the marks or the written table."""
    problems = trace.problems + trace.incomplete
    written = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    if written != table(trace):
        problems.append(f"{TABLE.relative_to(ROOT)} is stale: run `make trace`")
    return problems


def check_results(path: Path) -> list[str]:
    """Requirements that no test of a run has shown."""
    outcomes = json.loads(path.read_text(encoding="utf-8"))
    shown = {
        number
        for outcome in outcomes.values()
        if outcome["outcome"] == "passed"
        for number in outcome["requirements"]
    }
    missing = [f"{number}: no test passed" for number in REQUIREMENTS if number not in shown]
    say(f"{len(REQUIREMENTS) - len(missing)} of {len(REQUIREMENTS)} requirements shown.")
    return missing


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def main() -> int:
    """The command; 1 when something is missing or stale."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="write the table to the specs")
    parser.add_argument("--check", action="store_true", help="fail when stale or incomplete")
    parser.add_argument("--results", type=Path, help="outcomes of a test run")
    options = parser.parse_args()
    if options.results:
        problems = check_results(options.results)
    else:
        trace = collect()
        if options.write:
            TABLE.write_text(table(trace), encoding="utf-8")
        problems = check(trace) if options.check else trace.problems + trace.incomplete
        say(summary(trace) if options.check or options.write else table(trace))
    for problem in problems:
        say(f"  {problem}")
    return 1 if problems and (options.check or options.results) else 0


if __name__ == "__main__":
    sys.exit(main())
