"""The table of guarantees names tests that exist, for each of the eleven rules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TEXT = (TESTS.parent / "specs/010-memory-engine/guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", TEXT)))
RULES = re.split(r"^## (\d+)\. ", TEXT, flags=re.MULTILINE)[1:]


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_exists(file: str, test: str) -> None:
    assert test.startswith("test_")
    assert test in functions(TESTS / file)


def test_each_rule_has_mechanism_tests_and_limits() -> None:
    numbers, texts = RULES[::2], RULES[1::2]
    assert numbers == [str(number) for number in range(1, 12)]
    for number, text in zip(numbers, texts, strict=True):
        for part in ("**Mechanism.**", "**Tests.**", "**Not promised.**"):
            assert part in text, (number, part)
        assert "::test_" in text, number
