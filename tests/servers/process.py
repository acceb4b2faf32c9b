"""A server process of the tests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from orchestrata_memory.embedded import tether

STOP_SECONDS = 30.0


class ServerStartError(RuntimeError):
    """The server did not come up; the message ends with its log."""


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServerProcess:
    """A process that goes with the test run, with its output in a file."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None) -> None:
        self._command = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command]
        self._log = log
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._log.parent,
                start_new_session=True,
            )

    def wait_until(self, ready: object, seconds: float) -> None:
        """Poll `ready()` until it is true; raise when the process ends or time runs out."""
        assert callable(ready)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.running:
                raise ServerStartError(f"the server ended:\n{self.log_text[-4000:]}")
            if ready():
                return
            time.sleep(0.05)
        raise ServerStartError(f"not ready after {seconds:g} s:\n{self.log_text[-4000:]}")

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.running:
            assert self._process is not None
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=STOP_SECONDS)

    def stop(self) -> None:
        """SIGTERM, SIGKILL after a while."""
        if not self.running:
            return
        assert self._process is not None
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=STOP_SECONDS)
        self.kill()
