"""The Lua scripts: loading, and their digests.

Each stands in a file of its own under ``lua/``, named after what it does, and is sent with the
names (`keys.LUA_NAMES`) and what all share (``common.lua``) in front.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from orchestrata_memory.hot.keys import LUA_NAMES


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text and the SHA-1 that Redis knows it by."""

    name: str
    text: str
    digest: str


def _lua(name: str) -> str:
    return (files("orchestrata_memory.hot") / "lua" / f"{name}.lua").read_text(encoding="utf-8")


@cache
def script(name: str) -> Script:
    """The script in ``lua/{name}.lua``; read once in the process."""
    text = f"{LUA_NAMES}\n{_lua('common')}\n{_lua(name)}"
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, digest)
