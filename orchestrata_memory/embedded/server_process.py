"""The process of an embedded server, as its supervisor holds it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import logging.handlers
import os
import sys
from pathlib import Path

import psutil

from orchestrata_memory.embedded import tether
from orchestrata_memory.embedded.kinds import Ports, ServerKind
from orchestrata_memory.embedded.layout import PartFolder, ServerState

LOG_BYTES = 4 * 1024 * 1024
LOG_BACKUPS = 2
POLL_SECONDS = 0.1
ASK_SECONDS = 10.0
OUTPUT_CHUNK = 64 * 1024


class ServerDiedError(Exception):
    """The server ended, or did not answer in time, while it was awaited."""


class ServerProcess:
    """A running server; it inherits the lock on its data and goes with the supervisor."""

    def __init__(self, kind: ServerKind, folder: PartFolder, password: str) -> None:
        self._kind = kind
        self._folder = folder
        self._password = password
        self._process: asyncio.subprocess.Process | None = None
        self._pump: asyncio.Task[None] | None = None
        self._output = bounded_handler(folder.server_log)
        self._output.terminator = ""
        self._trouble = asyncio.Event()
        self.port_taken = False

    @property
    def pid(self) -> int:
        """Its process id; 0 when it does not run."""
        if self._process is None or self._process.returncode is not None:
            return 0
        return self._process.pid

    @property
    def created(self) -> float:
        """When the process began, by the system's clock; tells a reused process id."""
        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.pid).create_time() if self.pid else 0.0
        return 0.0

    async def start(self, ports: Ports, lock_descriptor: int) -> None:
        """Start it and return when it serves requests.

        Raises:
            ServerDiedError: It ended or did not answer; nothing runs any more.
        """
        self.port_taken = False
        self._trouble.clear()
        command = self._kind.command(self._folder, self._password, ports)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(lock_descriptor,),
            start_new_session=True,
            cwd=self._folder.data,
        )
        self._pump = asyncio.create_task(self._keep_output(self._process))
        try:
            async with asyncio.timeout(self._kind.start_seconds):
                await self._until_it_answers(ports)
        except TimeoutError as error:
            await self.stop()
            raise ServerDiedError(
                f"it did not answer within {self._kind.start_seconds:g} s"
            ) from error
        except BaseException:
            await self.stop()
            raise

    async def wait(self) -> int:
        """Until it ends; its exit code."""
        return 0 if self._process is None else await self._process.wait()

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after `stop_seconds`."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(self._kind.stop_seconds):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._pump is not None:
            await self._pump

    async def _until_it_answers(self, ports: Ports) -> None:
        while not await self._answers(ports):
            if self.port_taken:
                raise ServerDiedError("its port was taken")
            if self._trouble.is_set():
                raise ServerDiedError(f"it ended with exit code {await self.wait()}")
            await asyncio.sleep(POLL_SECONDS)

    async def _answers(self, ports: Ports) -> bool:
        """Ask once, for `ASK_SECONDS` at most, or until there is trouble.

        Who has taken the port may let a caller wait for ever.
        """
        answer = asyncio.ensure_future(self._kind.answers(self._password, ports))
        trouble = asyncio.ensure_future(self._trouble.wait())
        try:
            await asyncio.wait(
                {answer, trouble}, timeout=ASK_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if self._trouble.is_set() or not answer.done():
                return False
            return answer.result()
        finally:
            answer.cancel()
            trouble.cancel()
            await asyncio.gather(answer, trouble, return_exceptions=True)

    async def _keep_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None  # noqa: S101 - asked for with PIPE
        while chunk := await process.stdout.read(OUTPUT_CHUNK):
            text = chunk.decode("utf-8", errors="replace")
            if self._kind.port_taken in text:
                self.port_taken = True
                self._trouble.set()
            self._output.emit(logging.makeLogRecord({"msg": text}))
        self._trouble.set()  # a server that runs keeps its output open


def bounded_handler(path: Path) -> logging.handlers.RotatingFileHandler:
    """A log file of at most `LOG_BYTES` and `LOG_BACKUPS` older ones."""
    return logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=LOG_BACKUPS, encoding="utf-8", delay=True
    )


def kill_leftover(state: ServerState | None) -> bool:
    """SIGKILL a server that a dead supervisor left; True when there was one.

    A process id that belongs to someone else by now is left alone.
    """
    if state is None or not state.server_pid:
        return False
    try:
        process = psutil.Process(state.server_pid)
        if abs(process.create_time() - state.server_created) > 1.0:
            return False
        process.kill()
    except psutil.Error:
        return False
    return True
