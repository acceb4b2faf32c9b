"""The proxy does what it says, or the other tests here show nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from tests.faults.proxy import Proxy


async def test_it_forwards_delays_cuts_refuses_and_forgets() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]) as proxy:

        async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            return await asyncio.open_connection("127.0.0.1", proxy.port)

        async def say(text: bytes) -> bytes:
            writer.write(text)
            return await asyncio.wait_for(reader.read(100), 0.5)

        reader, writer = await connect()
        assert await say(b"hello") == b"hello"

        proxy.latency = 0.1
        started = time.monotonic()
        assert await say(b"slow") == b"slow"
        assert time.monotonic() - started >= 0.1
        proxy.latency, proxy.rate = 0.0, 100.0
        started = time.monotonic()
        assert await say(b"ten bytes!") == b"ten bytes!"
        assert time.monotonic() - started >= 0.1
        await proxy.heal()

        proxy.stall()
        with pytest.raises(TimeoutError):
            await say(b"stalled")
        await proxy.heal()
        assert await asyncio.wait_for(reader.read(100), 0.5) == b"stalled"

        proxy.cut_reply(lambda data: data == b"secret", after=3)
        assert await say(b"other") == b"other"
        assert await say(b"secret") == b"sec"
        with contextlib.suppress(ConnectionError):
            assert await reader.read(100) == b""
        assert proxy.cuts == 1

        reader, writer = await connect()
        assert await say(b"again") == b"again"
        proxy.forget_all()
        with pytest.raises(TimeoutError):
            await say(b"lost")
        reader, writer = await connect()
        assert await say(b"new ones work") == b"new ones work"

        await proxy.refuse()
        with pytest.raises(OSError):
            await connect()
        await proxy.heal()
        reader, writer = await connect()
        assert await say(b"back") == b"back"
        writer.close()
