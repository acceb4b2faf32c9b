"""A TCP proxy that can be told to misbehave, for whatever speaks over a connection.

Settings hold for all connections from the moment they are set. `heal` ends every misbehaviour;
connections that were cut stay cut.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

CHUNK = 65_536


@dataclass(eq=False)
class Link:
    """One client's connection and its counterpart at the server.

    Attributes:
        forgotten: Nothing passes any more, and nobody is told.
        cut_after: So many more bytes of reply pass, then it is cut; None: no limit.
    """

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    forgotten: bool = False
    cut_after: int | None = None

    def cut(self) -> None:
        """End both sides at once, without a goodbye."""
        for writer in (self.client, self.server):
            writer.transport.abort()


@dataclass(eq=False)
class Proxy:
    """Forwards to a server on loopback.

    Attributes:
        latency: Seconds that each chunk of a reply waits.
        rate: Bytes of reply a second on each connection; None: unlimited.
        stalled: Connections are accepted, and nothing passes in either direction.
        cuts: How many replies `cut_reply` has cut.
    """

    upstream: int
    port: int = 0
    latency: float = 0.0
    rate: float | None = None
    cuts: int = 0
    links: set[Link] = field(default_factory=set)
    _server: asyncio.Server | None = None
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _cut: tuple[Callable[[bytes], bool], int] | None = None

    async def __aenter__(self) -> Self:
        self._flowing.set()
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- what may go wrong ---------------------------------------------------------------
    async def listen(self) -> None:
        """Take connections, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Cut all connections and refuse new ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.cut_all()

    def cut_all(self) -> None:
        """Cut what is connected now; new connections work."""
        for link in list(self.links):
            link.cut()

    def forget_all(self) -> None:
        """What is connected now is dead without knowing it; new connections work."""
        for link in self.links:
            link.forgotten = True

    def stall(self) -> None:
        """Accept everything, pass nothing."""
        self._flowing.clear()

    def cut_reply(self, request: Callable[[bytes], bool], *, after: int) -> None:
        """Cut the reply to the next chunk of requests that fits, after so many bytes."""
        self._cut = (request, after)

    async def heal(self) -> None:
        """Behave again."""
        self.latency, self.rate, self._cut = 0.0, None, None
        self._flowing.set()
        await self.listen()

    # --- forwarding ----------------------------------------------------------------------
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            upstream, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, to_server)
        self.links.add(link)
        ways = [
            asyncio.ensure_future(self._requests(reader, link)),
            asyncio.ensure_future(self._replies(upstream, link)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            link.cut()
            self.links.discard(link)

    async def _requests(self, reader: asyncio.StreamReader, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                if link.forgotten:
                    continue
                if self._cut is not None and self._cut[0](data):
                    link.cut_after, self._cut = self._cut[1], None
                link.server.write(data)
                await link.server.drain()

    async def _replies(self, reader: asyncio.StreamReader, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                if link.forgotten:
                    continue
                if self.latency:
                    await asyncio.sleep(self.latency)
                if self.rate is not None:
                    await asyncio.sleep(len(data) / self.rate)
                if link.cut_after is not None:
                    link.client.write(data[: link.cut_after])
                    await link.client.drain()
                    self.cuts += 1
                    return
                link.client.write(data)
                await link.client.drain()
