"""The embedded default: an engine's own Redis and graph, with nothing to set up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.config.settings import EmbeddedSettings
from orchestrata_memory.embedded.commands import GRAPH_DATABASE, GRAPH_USER
from orchestrata_memory.embedded.kinds import ServerOptions
from orchestrata_memory.embedded.layout import (
    PartFolder,
    PartName,
    ServerState,
    default_data_dir,
)
from orchestrata_memory.embedded.part import EmbeddedPart
from orchestrata_memory.embedded.programs import find_arcadedb, find_redis_server
from orchestrata_memory.errors import MemoryEngineError

STOP_SECONDS = 90.0
GUARD_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedAddresses:
    """Where the embedded servers are; None for one that was not asked for.

    Attributes:
        redis_url: With its password, so never part of the text form.
    """

    redis_url: str | None = field(default=None, repr=False)
    graph: GraphAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedStatus:
    """What runs of one server.

    Attributes:
        running: It serves requests, for this process or another.
        phase: ``stopped``, ``starting``, ``ready``, ``restarting`` or ``failed``.
        address: Host and port, without a password; empty when it does not run.
        server_pid: 0 when it does not run.
        log: What it prints.
    """

    running: bool
    phase: str
    address: str = ""
    server_pid: int = 0
    supervisor_pid: int = 0
    fsync: str = ""
    data: Path
    log: Path


class EmbeddedServers:
    """Starts or shares the embedded servers of a data directory.

    Use it with ``async with``, or call `start` and `stop`. Two of them, in one process or in
    several, share the servers of one data directory; the servers stop when the last user has
    stopped or died, after `linger_seconds`.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        settings: EmbeddedSettings | None = None,
        *,
        redis: bool = True,
        graph: bool = True,
    ) -> None:
        self._settings = settings or EmbeddedSettings()
        self.data_dir = (data_dir or self._settings.data_dir or default_data_dir()).absolute()
        self._folders: dict[PartName, PartFolder] = {}
        if redis:
            self._folders["redis"] = PartFolder(self.data_dir, "redis")
        if graph:
            self._folders["graph"] = PartFolder(self.data_dir, "graph")
        self._parts = {
            name: EmbeddedPart(folder, self._options()) for name, folder in self._folders.items()
        }
        self._addresses: EmbeddedAddresses | None = None
        self._ports: dict[PartName, tuple[int, int]] = {}
        self._guard: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> EmbeddedAddresses:
        """Where they are.

        Raises:
            RuntimeError: Before `start` or after `stop`.
        """
        if self._addresses is None:
            raise RuntimeError("the embedded servers are not started")
        return self._addresses

    async def start(self) -> EmbeddedAddresses:
        """Start what does not run, wait until it serves requests; idempotent.

        The first start takes 2 to 10 seconds, mostly the graph's.

        Raises:
            MemoryConfigurationError: A program is missing (says what to install), the data
                directory cannot be used, or the running server has other settings.
            MemoryUnavailableError: A server does not come up.
        """
        if self._addresses is None:
            await asyncio.to_thread(self._check_programs)
            try:
                joined = await self._join_all()
            except BaseException:
                self._leave_all()
                raise
            self._addresses = EmbeddedAddresses(
                redis_url=_redis_url(*joined["redis"]) if "redis" in joined else None,
                graph=_graph_address(*joined["graph"]) if "graph" in joined else None,
            )
            self._ports = {name: _ports(state) for name, (state, _) in joined.items()}
            self._guard = asyncio.create_task(self._keep(), name="embedded-servers-guard")
        return self._addresses

    async def stop(self, *, wait: bool = False) -> None:
        """Stop using the servers; idempotent.

        Args:
            wait: Return only when they are down, or others use them still after 90 s.
        """
        self._addresses = None
        guard, self._guard = self._guard, None
        try:
            if guard is not None:
                guard.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await guard
        finally:
            self._leave_all()  # else the servers would run on
        if wait:
            await asyncio.gather(*(part.wait_down(STOP_SECONDS) for part in self._parts.values()))

    async def status(self) -> dict[PartName, EmbeddedStatus]:
        """What runs in the data directory, whoever started it; starts nothing."""
        return {name: await self._status_of(name) for name in self._parts}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def _options(self) -> ServerOptions:
        return ServerOptions(
            fsync=self._settings.fsync,
            heap_mb=self._settings.graph_heap_mb,
            linger_seconds=self._settings.linger_seconds,
        )

    def _check_programs(self) -> None:
        """Say what is missing before anything is started."""
        if "redis" in self._parts:
            find_redis_server()
        if "graph" in self._parts:
            find_arcadedb()

    async def _join_all(self) -> dict[PartName, tuple[ServerState, str]]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {name: group.create_task(part.join()) for name, part in self._parts.items()}
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return {name: task.result() for name, task in tasks.items()}

    async def _keep(self) -> None:
        """Have a supervisor that was killed replaced; its successor takes the same ports.

        Whatever fails is tried again: files or processes may be short for a while.
        """
        told = dict(self._ports)
        while True:
            await asyncio.sleep(GUARD_SECONDS)
            for name, part in self._parts.items():
                try:
                    ports = await self._ports_now(name, part)
                except MemoryEngineError as error:
                    logger.error("the embedded %s does not come back: %s", name, error)  # noqa: TRY400
                except Exception as error:  # noqa: BLE001 - the guard outlives whatever fails
                    kind = type(error).__name__
                    logger.error("the embedded %s cannot be watched (%s)", name, kind)  # noqa: TRY400
                else:
                    self._tell_moved(name, ports, told)

    async def _ports_now(self, name: PartName, part: EmbeddedPart) -> tuple[int, int] | None:
        """Where the server is, started again when its supervisor is gone; None while it starts."""
        alive, state = await part.state()
        if not alive:
            logger.warning("the supervisor of the embedded %s is gone: restart", name)
            state, _ = await part.join()
        return _ports(state) if state is not None and state.phase == "ready" else None

    def _tell_moved(
        self, name: PartName, ports: tuple[int, int] | None, told: dict[PartName, tuple[int, int]]
    ) -> None:
        """Say once that this engine calls at ports that may be a stranger's by now."""
        if ports is None or ports == told[name]:
            return
        told[name] = ports
        if ports != self._ports[name]:
            logger.error(
                "the embedded %s is now at port %d, as port %d was taken while it was down: "
                "restart this engine, which still calls the old one",
                *(name, ports[0], self._ports[name][0]),
            )

    def _leave_all(self) -> None:
        for part in self._parts.values():
            part.leave()

    async def _status_of(self, name: PartName) -> EmbeddedStatus:
        folder = self._folders[name]
        alive, state = await self._parts[name].state()
        phase = state.phase if state else ("starting" if alive else "stopped")
        running = alive and phase == "ready"
        return EmbeddedStatus(
            running=running,
            phase=phase,
            address=f"127.0.0.1:{state.port}" if state and running else "",
            server_pid=state.server_pid if state and running else 0,
            supervisor_pid=state.supervisor_pid if state and alive else 0,
            fsync=state.fsync if state and running and name == "redis" else "",
            data=folder.data,
            log=folder.server_log,
        )


def _ports(state: ServerState) -> tuple[int, int]:
    return state.port, state.http_port


def _redis_url(state: ServerState, password: str) -> str:
    return f"redis://:{password}@127.0.0.1:{state.port}/0"


def _graph_address(state: ServerState, password: str) -> GraphAddress:
    return GraphAddress(
        uri=f"bolt://127.0.0.1:{state.port}",
        dialect="arcadedb",
        username=GRAPH_USER,
        password=password,
        database=GRAPH_DATABASE,
        http_url=f"http://127.0.0.1:{state.http_port}",
    )
