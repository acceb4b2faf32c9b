"""The outcome of one check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version


class Status(StrEnum):
    """``warn``: works, with something missing; ``fail``: the engine cannot run like this."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one look found.

    Attributes:
        name: What was looked at.
        detail: What was found.
        fix: What to do; empty when all is well.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""


Look = Callable[[], Awaitable[Check]]


def ok(name: str, detail: str) -> Check:
    """All is well."""
    return Check(name=name, status=Status.OK, detail=detail)


def warn(name: str, detail: str, fix: str) -> Check:
    """It works, but not as well as it could."""
    return Check(name=name, status=Status.WARN, detail=detail, fix=fix)


def fail(name: str, detail: str, fix: str) -> Check:
    """The engine cannot run like this."""
    return Check(name=name, status=Status.FAIL, detail=detail, fix=fix)


def installed(package: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def said(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).split("\n")
    return lines[0].strip() or type(error).__name__
