"""Options that every command takes: which configuration, and who is calling."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

DEFAULT_VOLK = "USR:LOCAL"
DEFAULT_ROLES = ("team_lead",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options common to all commands, as given; None where they were not.

    Attributes:
        config: Configuration file (YAML).
        data_dir: Where the embedded servers keep their data.
        volk: Who calls; the default Volk `DEFAULT_VOLK` when nobody is named.
        session: The caller's session; one a day when none is named.
        provider: Of the caller's language model; chooses the token counter.
        model: The caller's language model.
        json: Print one JSON document instead of tables.
    """

    config: Path | None = None
    data_dir: Path | None = None
    volk: str | None = None
    session: str | None = None
    task: str | None = None
    project: str | None = None
    provider: str | None = None
    model: str | None = None
    json: bool = False

    def overridden(self, given: Mapping[str, object]) -> Options:
        """These, with what is given in `given` in their place; None and False are not given."""
        names = {item.name for item in fields(self)}
        changes: dict[str, Any] = {
            name: value
            for name, value in given.items()
            if name in names and value not in {None, False}
        }
        return replace(self, **changes)

    @property
    def caller(self) -> str:
        """The calling Volk's alias."""
        return DEFAULT_VOLK if self.volk is None else self.volk

    @property
    def session_id(self) -> str:
        """The caller's session: the one named, else one a day for each user of the machine."""
        if self.session is not None:
            return self.session
        return f"local-{_user()}-{datetime.now().astimezone():%Y-%m-%d}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "user"
