"""Queries live in files of their own, named after what they do, and are read once.

A query may hold the places ``/*scope*/``, ``/*readable*/``, ``/*sound*/``, ``/*record*/`` and
``/*found*/``: comments to the server, filled here with fixed text (never with a caller's values,
which are always parameters).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_FOLDER = files("orchestrata_memory.cold") / "cypher"


@cache
def query(name: str, suffix: str = "cypher") -> str:
    """The text of the query of that name."""
    return (_FOLDER / f"{name}.{suffix}").read_text(encoding="utf-8").strip()


@cache
def statements(name: str, suffix: str = "cypher") -> tuple[str, ...]:
    """The statements of a file, which end with semicolons; comment lines are left out."""
    lines = [line for line in query(name, suffix).splitlines() if not line.startswith("//")]
    return tuple(part.strip() for part in "\n".join(lines).split(";") if part.strip())


TRUSTING = "m.embedding IS NOT NULL"
"""Condition on a vector of our own making."""

CAREFUL = "size(m.embedding) = $dimension AND any(x IN m.embedding WHERE x <> 0.0)"
"""Condition on a vector that anyone may have made; some ten times as dear."""


@cache
def filled(name: str, scope: str = "true", readable: str = "true", sound: str = TRUSTING) -> str:
    """The query with its places filled."""
    text = query(name).replace("/*found*/", query("fragment_found"))
    text = text.replace("/*scope*/", scope).replace("/*readable*/", readable)
    text = text.replace("/*sound*/", sound)
    return text.replace("/*record*/", query("fragment_record"))
