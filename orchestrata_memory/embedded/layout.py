"""Files of an embedded server: who may use it, who runs it, where it is.

    DATA_DIR/logs/                  bounded logs of every server and its supervisor
    DATA_DIR/{redis,graph}/data/    the server's data
                           password     made once, readable by the owner only
                           state.json   where the server is now, or why it did not start
                           start.lock   held by who looks for or starts the server
                           users.lock   shared by the engines that use it
                           supervisor.lock  held by the supervisor
                           server.lock  held by the supervisor and the server itself

The locks, not process ids, say who is alive: a lock cannot be stale, a process id can be someone
else's by now.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrata_memory.config.environment import DATA_DIR
from orchestrata_memory.embedded.commands import write_private
from orchestrata_memory.errors import MemoryConfigurationError

PartName = Literal["redis", "graph"]
Phase = Literal["ready", "restarting", "failed"]


def default_data_dir(environ: Mapping[str, str] | None = None) -> Path:
    """``ORCHESTRATA_MEMORY_DATA_DIR``, else the user's data folder."""
    given = (os.environ if environ is None else environ).get(DATA_DIR)
    if given:
        return Path(given).expanduser().absolute()
    return Path(platformdirs.user_data_dir("orchestrata-memory", appauthor=False))


class ServerState(BaseModel):
    """What a supervisor says of its server.

    Attributes:
        phase: ``restarting`` while a server that died comes back on the same port.
        problem: Why it failed; names no secret.
        port: Redis or Bolt.
        http_port: The graph's; 0 for Redis.
        fsync: As the server was started with.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    phase: Phase
    problem: str = ""
    supervisor_pid: int
    server_pid: int = 0
    server_created: float = 0.0
    port: int = 0
    http_port: int = 0
    program: str = ""
    fsync: str = "always"


class PartFolder:
    """The folder of one embedded server."""

    def __init__(self, data_dir: Path, part: PartName) -> None:
        self.data_dir = data_dir
        self.part = part
        self.path = data_dir / part
        self.data = self.path / "data"
        self.logs = data_dir / "logs"
        self.start_lock = self.path / "start.lock"
        self.users_lock = self.path / "users.lock"
        self.supervisor_lock = self.path / "supervisor.lock"
        self.server_lock = self.path / "server.lock"
        self._state = self.path / "state.json"
        self._password = self.path / "password"

    @property
    def server_log(self) -> Path:
        """What the server prints."""
        return self.logs / f"{self.part}.log"

    @property
    def supervisor_log(self) -> Path:
        """What its supervisor says."""
        return self.logs / f"{self.part}-supervisor.log"

    def prepare(self) -> None:
        """Make the folders, for the owner only.

        Raises:
            MemoryConfigurationError: The data directory cannot be made or written.
        """
        try:
            for folder in (self.data_dir, self.path, self.data, self.logs):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.path / f".write-{os.getpid()}-{secrets.token_hex(4)}"
            probe.touch(mode=0o600)
            probe.unlink()
        except OSError as error:
            raise MemoryConfigurationError(
                f"runtime.memory_engine.embedded.data_dir: {self.data_dir} cannot be used "
                f"({error.strerror or error}): choose a folder you may write to, there or by "
                f"{DATA_DIR}"
            ) from error

    def password(self) -> str:
        """The server's password, made on first use. Call it under `start_lock`."""
        if self._password.exists():
            text = self._password.read_text(encoding="ascii").strip()
            if text:
                return text
        text = secrets.token_urlsafe(24)
        write_private(self._password, text + "\n")
        return text

    def read_state(self) -> ServerState | None:
        """The last word of a supervisor; None when there is none or it cannot be understood."""
        try:
            return ServerState.model_validate_json(self._state.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write_state(self, state: ServerState) -> None:
        """Put the state in place at once."""
        write_private(self._state, state.model_dump_json())

    def clear_state(self) -> None:
        """Forget it."""
        self._state.unlink(missing_ok=True)

    def last_log_lines(self, count: int = 12) -> str:
        """The end of the server's log, for an error message."""
        try:
            text = self.server_log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-count:])
