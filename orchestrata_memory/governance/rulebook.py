"""Rule files: read, loaded into a module, and what they may widen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance.machine import DRIVER
from orchestrata_memory.governance.terms import Prolog, Text

READING: Final = frozenset(
    {
        "can_read_memory/2",
        "memory_readable_by/2",
        "memory_owner/2",
        "memory_classification/2",
        "memory_shared_with/2",
        "memory_delegation/3",
        "delegates_to/2",
        "grantors/2",
        "reached/4",
        "live_delegation/2",
        "unexpired/1",
        "delegation_hops/1",
        "registered/1",
    }
)
"""Predicates that decide what can be read. Where a deployment adds clauses to one of them, nothing
is known before asking, so reads are not narrowed beforehand. (`registered/1` is among them because
a delegation counts only between registered Volks.)"""


@dataclass(frozen=True, slots=True)
class RuleSource:
    """Text of rules and the name that errors give it."""

    name: str
    text: str


def shipped_rules() -> RuleSource:
    """The package's own rules."""
    source = files("orchestrata_memory.governance").joinpath("rules", "memory.pl")
    return RuleSource("memory.pl", source.read_text("utf-8"))


def read_rules(path: Path) -> RuleSource:
    """Read a deployment's rule file.

    Raises:
        MemoryGovernanceError: It cannot be read or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MemoryGovernanceError(
            f"the rule file {path} cannot be read: {error.strerror}"
        ) from error
    try:
        return RuleSource(str(path), data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MemoryGovernanceError(f"the rule file {path}, line {line}: not UTF-8") from error


def load(prolog: Prolog, module: str, sources: Sequence[RuleSource]) -> frozenset[str]:
    """Load `sources` into `module`, in order.

    Returns:
        What the sources define, as ``name/arity``.

    Raises:
        MemoryGovernanceError: Names the file and line of what is wrong.
    """
    defined: set[str] = set()
    for source in sources:
        (result,) = prolog.run(DRIVER, "load_rules", module, Text(source.text), outputs=1)
        if result.name == "problem":
            line, problem = result.arguments
            raise MemoryGovernanceError(f"the rule file {source.name}, line {line}: {problem}")
        defined.update(result.arguments[0])
    return frozenset(defined)


def may_forbid_reading(prolog: Prolog, module: str) -> bool:
    """Whether a clause of `memory_forbidden/1` in `module` can be about reading."""
    (answer,) = prolog.run(DRIVER, "reading_forbidden", module, outputs=1)
    return bool(answer == "maybe")
