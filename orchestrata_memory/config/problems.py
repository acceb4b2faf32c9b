"""What is wrong with settings: the field and the rule, never the value, which may be a secret."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from orchestrata_memory.errors import MemoryConfigurationError

_OWN_KIND = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingProblem:
    """One mistake.

    Attributes:
        where: Names of the groups and of the field.
        what: The rule it breaks.
    """

    where: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (".".join(self.where), self.what) if part)


class InvalidSettingsError(MemoryConfigurationError):
    """Settings break their rules.

    Attributes:
        problems: All of them.
    """

    def __init__(self, group: str, problems: Sequence[SettingProblem]) -> None:
        super().__init__(listed(group, [str(problem) for problem in problems]))
        self.problems = tuple(problems)


def listed(source: str, problems: Sequence[str]) -> str:
    """One problem in a line, several in a line each, after where they come from."""
    if len(problems) == 1:
        return f"{source}: {problems[0]}"
    lines = "".join(f"\n  {problem}" for problem in problems)
    return f"{source}: {len(problems)} problems:{lines}"


def refusal(*problems: SettingProblem) -> PydanticCustomError:
    """For a validator to raise: `problems` of what it looks at, and all of them.

    Of several validators pydantic tells only what the first finds.
    """
    return PydanticCustomError(_OWN_KIND, "it breaks a rule", {"problems": problems})


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[SettingProblem]:
    """Every mistake that `model` found."""
    found = error.errors(include_url=False, include_input=False)
    return [problem for details in found for problem in _problems(details, model)]


def _problems(details: ErrorDetails, model: type[BaseModel]) -> Iterator[SettingProblem]:
    where = tuple(str(part) for part in details["loc"])
    what = details["msg"].removeprefix("Value error, ")
    if details["type"] == "extra_forbidden":
        what = "there is no such setting" + _suggestion(where, model)
    if details["type"] != _OWN_KIND:
        yield SettingProblem(where=where, what=what)
        return
    for problem in details["ctx"]["problems"]:
        yield SettingProblem(where=(*where, *problem.where), what=problem.what)


def _suggestion(where: tuple[str, ...], root: type[BaseModel]) -> str:
    model: Any = root
    for name in where[:-1]:
        field = model.model_fields.get(name)
        model = field.annotation if field else None
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return ""
    close = difflib.get_close_matches(where[-1], model.model_fields, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return "; there are " + ", ".join(sorted(model.model_fields))
