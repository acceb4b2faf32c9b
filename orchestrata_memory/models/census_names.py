"""Names under which the census counts live memories.

`hot/lua/common.lua` counts under the same names, within the scripts that write.
"""

from __future__ import annotations

from typing import Final

from orchestrata_memory.models.scope import MemoryScope

ALL: Final = "all"
_SESSION: Final = "session:"
_PROJECT: Final = "project:"


def of_session(session_id: str) -> str:
    """The name that counts a session's memories."""
    return _SESSION + session_id


def of_project(project_id: str) -> str:
    """The name that counts a project's memories."""
    return _PROJECT + project_id


def session_of(name: str) -> str | None:
    """The session that is counted under the name, if it is a session's."""
    return name.removeprefix(_SESSION) if name.startswith(_SESSION) else None


def covering(scope: MemoryScope) -> str:
    """The name of the narrowest count that covers the scope."""
    if scope.session_id is not None:
        return of_session(scope.session_id)
    if scope.project_id is not None:
        return of_project(scope.project_id)
    return ALL
