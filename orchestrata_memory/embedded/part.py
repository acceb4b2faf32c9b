"""An engine's use of one embedded server: join the one that runs, or have it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

import psutil

from orchestrata_memory.embedded.kinds import ServerOptions
from orchestrata_memory.embedded.layout import PartFolder, ServerState
from orchestrata_memory.embedded.locks import FileLock, is_owned
from orchestrata_memory.errors import MemoryConfigurationError, MemoryUnavailableError

POLL_SECONDS = 0.05
LAUNCH_SECONDS = 60.0
RUNNING_SECONDS = 660.0
"""Longer than any server may take to load its data: the supervisor's own limits come first."""


class EmbeddedPart:
    """Joins and leaves the server of one folder."""

    def __init__(self, folder: PartFolder, options: ServerOptions) -> None:
        self._folder = folder
        self._options = options
        self._use = FileLock(folder.users_lock)

    async def join(self) -> tuple[ServerState, str]:
        """Start the server or share the running one; its state and password.

        Raises:
            MemoryConfigurationError: It cannot be started here, or runs with other promises.
            MemoryUnavailableError: It does not come up.
        """
        await asyncio.to_thread(self._folder.prepare)
        deadline = time.monotonic() + RUNNING_SECONDS
        newcomer = not self._use.held
        looking = FileLock(self._folder.start_lock)
        try:
            await self._until(looking.try_exclusive, deadline, "another engine to start it")
            await self._until(self._use.try_shared, deadline, "the server before it to stop")
            state = await self._find_or_start(deadline)
            self._check(state)
            return state, await asyncio.to_thread(self._folder.password)
        except BaseException:
            if newcomer:
                self._use.release()
            raise
        finally:
            looking.release()

    def leave(self) -> None:
        """Stop using it; the supervisor stops it when nobody does."""
        self._use.release()

    async def wait_down(self, seconds: float) -> bool:
        """Whether the server and its supervisor are gone, waiting up to that long."""
        deadline = time.monotonic() + seconds
        while await self.alive():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    async def alive(self) -> bool:
        """Whether a supervisor keeps the server."""
        return await asyncio.to_thread(self._alive)

    async def state(self) -> tuple[bool, ServerState | None]:
        """Whether a supervisor runs, and its last word, or that of one that failed."""
        return await asyncio.to_thread(self._look)

    async def _find_or_start(self, deadline: float) -> ServerState:
        launched = False
        while time.monotonic() < deadline:
            alive = await self.alive()
            state = await asyncio.to_thread(self._folder.read_state)
            if state is not None and state.phase == "failed" and launched:
                raise self._failure(state.problem)
            if alive:
                if state is not None and state.phase == "ready" and _lives(state.supervisor_pid):
                    return state
            elif launched:
                raise self._failure(f"its supervisor ended: see {self._folder.supervisor_log}")
            else:
                await self._launch()
                launched = True
            await asyncio.sleep(POLL_SECONDS)
        raise self._failure("it is not ready in time")

    async def _launch(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrata_memory.embedded.supervisor"),
            *(str(self._folder.data_dir), self._folder.part, json.dumps(asdict(self._options))),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LAUNCH_SECONDS):
                _, complaint = await process.communicate()
        except TimeoutError as error:
            raise self._failure("its supervisor does not start") from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        if process.returncode:
            last = complaint.decode(errors="replace").strip().splitlines()[-1:]
            raise self._failure("its supervisor does not start: " + "".join(last))

    def _check(self, state: ServerState) -> None:
        if self._options.fsync == "always" and state.fsync != "always":
            raise MemoryConfigurationError(
                "runtime.memory_engine.embedded.fsync: the Redis of "
                f"{self._folder.data_dir} runs with `{state.fsync}` for another engine, and this "
                "one asks for `always`: stop the other engine, or give both the same setting"
            )

    def _look(self) -> tuple[bool, ServerState | None]:
        if not self._folder.path.is_dir():
            return False, None
        alive, state = self._alive(), self._folder.read_state()
        if not alive and state is not None and state.phase != "failed":
            state = None  # left by a supervisor that was killed
        return alive, state

    def _alive(self) -> bool:
        return is_owned(self._folder.supervisor_lock)

    def _failure(self, problem: str) -> MemoryUnavailableError:
        return MemoryUnavailableError(f"the embedded {self._folder.part} server", problem)

    async def _until(self, ready: Callable[[], bool], deadline: float, what: str) -> None:
        while not ready():
            if time.monotonic() >= deadline:
                raise self._failure(f"waited too long for {what}")
            await asyncio.sleep(POLL_SECONDS)


def _lives(pid: int) -> bool:
    """Whether a process runs; one that was killed may hold its locks a moment longer."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
