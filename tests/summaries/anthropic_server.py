"""A server on loopback that speaks as much of Anthropic's Messages API as the product uses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeAnthropic:
    """What it answers, and what it was asked.

    Attributes:
        text: The model's answer.
        status: HTTP status of every answer.
        delay: Seconds before it answers.
        stop_reason: As in a message.
        input_tokens: What counting tokens answers.
        raw: Sent as the body instead, when given.
        requests: (path, headers, body) of what came.
    """

    text: str = "A summary."
    status: int = 200
    delay: float = 0.0
    stop_reason: str = "end_turn"
    input_tokens: int = 7
    raw: bytes | None = None
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path, headers, body = await _read(reader)
            self.requests.append((path, headers, body))
            await asyncio.sleep(self.delay)
            answer = self.raw if self.raw is not None else json.dumps(self._answer(path)).encode()
            writer.write(
                f"HTTP/1.1 {self.status} Status\r\ncontent-type: application/json\r\n"
                f"content-length: {len(answer)}\r\nconnection: close\r\n\r\n".encode()
            )
            writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _answer(self, path: str) -> dict[str, Any]:
        if self.status != 200:
            return {"type": "error", "error": {"type": "api_error", "message": "no"}}
        if path.endswith("/count_tokens"):
            return {"input_tokens": self.input_tokens}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [{"type": "text", "text": self.text}],
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return head[0].split(" ")[1], headers, json.loads(body or b"{}")


@asynccontextmanager
async def fake_anthropic(**answers: Any) -> AsyncIterator[FakeAnthropic]:
    fake = FakeAnthropic(**answers)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield fake
