"""The traceability tool counts what really shows something."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "trace.py"


@pytest.fixture(scope="module")
def trace():
    spec = importlib.util.spec_from_file_location("trace_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trace_tool"] = module
    spec.loader.exec_module(module)
    return module


def project(root: Path, tests: str, code: str = "") -> Path:
    (root / "orchestrata_memory").mkdir()
    (root / "orchestrata_memory" / "part.py").write_text(dedent(code))
    (root / "tests").mkdir()
    (root / "tests" / "test_part.py").write_text(dedent(tests))
    return root


def test_docstrings_of_modules_classes_and_methods_count(trace) -> None:
    tree = ast.parse(
        dedent('''
        """Module.

        Traces: REQ-010-001
        """
        class A:
            """A.

            Traces: REQ-010-002,
                REQ-010-003
            """
            async def b(self):
                """B mentions REQ-010-009 only.

                Traces: REQ-010-004
                """
        ''').lstrip()
    )
    assert list(trace.code_traces(tree)) == [
        ("", "REQ-010-001"),
        ("::A", "REQ-010-002"),
        ("::A", "REQ-010-003"),
        ("::A.b", "REQ-010-004"),
    ]


def test_marks_of_modules_classes_and_tests_add_up(trace) -> None:
    tree = ast.parse(
        dedent("""
        pytestmark = [pytest.mark.servers, pytest.mark.traces("REQ-010-001")]

        @pytest.mark.traces("REQ-010-002")
        class TestA:
            @pytest.mark.traces("REQ-010-003")
            async def test_b(self): ...

        def helper(): ...
        """)
    )
    assert list(trace.test_traces(tree)) == [
        ("TestA::test_b", ["REQ-010-001", "REQ-010-002", "REQ-010-003"])
    ]


@pytest.mark.parametrize("mark", ["skip", "skip('why')", "skipif(True, reason='x')", "xfail"])
def test_a_test_that_may_not_run_shows_nothing(trace, mark: str) -> None:
    tree = ast.parse(
        f"@pytest.mark.{mark}\n@pytest.mark.traces('REQ-010-001')\ndef test_a(): ...\n"
    )
    assert list(trace.test_traces(tree)) == []


def test_greedy_and_unknown_marks_are_problems(trace, tmp_path: Path) -> None:
    root = project(
        tmp_path,
        """
        @pytest.mark.traces("REQ-010-001", "REQ-010-002", "REQ-010-003", "REQ-010-004")
        def test_greedy(): ...

        @pytest.mark.traces("REQ-010-056")
        def test_unknown(): ...
        """,
    )
    problems = trace.collect(root).problems
    assert any("test_greedy carries more than 3" in problem for problem in problems)
    assert any("there is no REQ-010-056" in problem for problem in problems)


def test_what_lacks_code_or_a_test_is_named(trace, tmp_path: Path) -> None:
    root = project(
        tmp_path,
        '@pytest.mark.traces("REQ-010-001")\ndef test_a(): ...\n',
        '"""Part.\n\nTraces: REQ-010-001, REQ-010-002\n"""\n',
    )
    found = trace.collect(root)
    assert "REQ-010-002: no test" in found.incomplete
    assert "REQ-010-002: no code" not in found.incomplete
    assert not any("REQ-010-001" in problem for problem in found.incomplete)
    assert trace.summary(found).startswith("1 of 55")


def test_only_passed_tests_count_in_the_results_of_a_run(trace, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(
        json.dumps(
            {
                "a": {"outcome": "passed", "requirements": ["REQ-010-001"]},
                "b": {"outcome": "skipped", "requirements": ["REQ-010-002"]},
                "c": {"outcome": "failed", "requirements": ["REQ-010-003"]},
            }
        )
    )
    missing = trace.check_results(results)
    assert len(missing) == 54
    assert "REQ-010-002: no test passed" in missing
