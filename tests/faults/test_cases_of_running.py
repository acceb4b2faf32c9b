"""Cases that broke others: the event loop, the database's name, missing parts."""

from __future__ import annotations

import asyncio
import builtins
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Self

import neo4j
import pytest

import orchestrata_memory
from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.embedding import onnx
from orchestrata_memory.embedding.factory import build_embedder
from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.interfaces import CXPPacket, HealthStatus
from orchestrata_memory.models import MemoryClassification, MemoryScope
from tests.engine.conftest import As
from tests.faults.conftest import Lab
from tests.faults.doubles import MoodyModel, use_model

pytestmark = pytest.mark.servers

OURS = str(Path(orchestrata_memory.__file__).parent)
BLOCKING: list[tuple[Any, str]] = [
    (time, "sleep"),
    (builtins, "open"),
    (os, "fsync"),
    (os, "replace"),
    (os, "unlink"),
    (os, "open"),
    (os, "stat"),
    (socket, "create_connection"),
    (socket, "getaddrinfo"),
    (threading.Thread, "join"),
    (Path, "open"),
    (Path, "read_text"),
    (Path, "read_bytes"),
    (Path, "write_text"),
    (Path, "exists"),
]


def _ours(frame: FrameType | None) -> str:
    """The place in our package that led here without leaving the loop's thread, or nothing."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            return f"{Path(frame.f_code.co_filename).relative_to(OURS)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@contextmanager
def watched(found: list[str]) -> Iterator[None]:
    """Note every blocking call that our package makes on this thread."""
    here = threading.get_ident()
    patch = pytest.MonkeyPatch()

    def guard(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            if threading.get_ident() == here and (place := _ours(caller)):
                found.append(f"{name} by {caller.f_globals.get('__name__')} from {place}")
            return original(*args, **kwargs)

        return guarded

    for owner, name in BLOCKING:
        patch.setattr(owner, name, guard(name, getattr(owner, name)))
    try:
        yield
    finally:
        patch.undo()


class Watchdog:
    """A thread that looks where the loop's thread stands when the loop does not turn."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._turned = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._loop_thread = threading.get_ident()
        self.stacks: list[str] = []

    async def __aenter__(self) -> Self:
        self._ticking = asyncio.create_task(self._tick())
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        self._ticking.cancel()
        await asyncio.gather(self._ticking, return_exceptions=True)
        await asyncio.to_thread(self._thread.join)

    async def _tick(self) -> None:
        while True:
            self._turned = time.monotonic()
            await asyncio.sleep(0.01)

    def _watch(self) -> None:
        last: tuple[int, str] = (0, "")
        seen = 0
        while not self._over.wait(0.05):
            frame = sys._current_frames().get(self._loop_thread)
            late = time.monotonic() - self._turned > self._patience
            # A busy machine stops anybody; only a thread seen in one function of ours counts.
            place = _ours(frame) if late else ""
            seen = seen + 1 if place and place.split(":")[0] == last[1].split(":")[0] else 0
            last = (seen, place)
            if seen >= 5:
                self.stacks.append(place)
                seen = 0


async def use_everything(lab: Lab, as_: As, engine: Any, prefix: str) -> None:
    """Every operation once, hot and cold."""
    session, task, project = f"{prefix}-s", f"{prefix}-t", f"{prefix}-p"
    with as_(session_id=session, task_id=task, project_id=project):
        entries = [
            await engine.store(f"harbour note {n} of {prefix}", tags=["t"]) for n in range(60)
        ]
        await engine.store("explicit", key=f"{prefix}-k")
        await engine.retrieve(entries[0].key)
        await engine.update(entries[0].key, content="changed", tags=["u"])
        await engine.update(entries[0].key, classification=MemoryClassification.SHARED)
        await engine.share(entries[1].key, "ENG:BETA")
        await engine.unshare(entries[1].key, "ENG:BETA")
        await engine.delegate("ENG:GAMMA")
        await engine.revoke("ENG:GAMMA")
        await engine.search("harbour", min_similarity=0)
        await engine.find(tags=["t"], scope=MemoryScope(project_id=project))
        await engine.summarize(session, max_tokens=256)
        summary = await engine.store_summary(session, max_tokens=128)
        assert summary is not None
        await engine.lineage(summary.key)
        await engine.inject(CXPPacket(), "the harbour", budget_tokens=256)
        await engine.settle()
        await engine.related(entries[2].key, depth=2)
        await engine.audit_trail(entries[0].key)
        await engine.get_health()
        assert await engine.migrate_to_cold(session)
        with as_(session_id=f"{session}-2", project_id=project):
            await engine.retrieve(entries[3].key)
            await engine.search("harbour note", min_similarity=0)
            await engine.find(tags=["t"])
            await engine.promote(entries[4].key)
            await engine.summarize(task, max_tokens=64)
            await engine.delete(entries[5].key)
        await engine.close_session(f"{session}-2")
        await engine.settle()


async def test_the_watch_would_see_a_blocking_call(tmp_path: Path) -> None:
    found: list[str] = []
    code = compile("import time\ntime.sleep(0.001)", f"{OURS}/made_up.py", "exec")
    with watched(found):
        exec(code, {})
        await asyncio.to_thread(lambda: exec(code, {}))
    assert found == ["sleep by None from made_up.py:2"]


async def test_no_operation_blocks_the_event_loop(lab: Lab, as_: As) -> None:
    engine = await lab.start()
    await use_everything(lab, as_, engine, "warm")
    found: list[str] = []
    async with Watchdog(0.25) as dog:
        with watched(found):
            with as_():  # so many at once that new connections are made
                await asyncio.gather(*(engine.retrieve(f"nothing {n}") for n in range(50)))
            await use_everything(lab, as_, engine, "watched")
    assert found == []
    assert dog.stacks == []


async def test_the_trails_file_is_not_written_on_the_loop(lab: Lab, as_: As) -> None:
    proxy = await lab.proxy_redis()
    engine = await lab.start(redis=proxy)
    found: list[str] = []
    with as_():
        entry = await engine.store("kept")
        assert await engine.settle()
        await proxy.refuse()
        with watched(found):
            for _ in range(5):
                await engine.retrieve(entry.key)
                await asyncio.sleep(0.05)
            await engine.get_health()
            await proxy.heal()
            await engine.settle()
    assert found == []


async def test_the_configured_database_is_used_on_every_query(
    lab: Lab, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    original = neo4j.AsyncDriver.session

    def session(self: neo4j.AsyncDriver, **config: Any) -> neo4j.AsyncSession:
        asked.append(config.get("database"))
        return original(self, **config)

    monkeypatch.setattr(neo4j.AsyncDriver, "session", session)
    engine = await lab.start()
    await use_everything(lab, as_, engine, "named")
    assert len(asked) > 20
    assert set(asked) == {lab.graph.database}
    with pytest.raises(MemoryConfigurationError, match="database"):
        await lab.start(graph={"database": "nosuchdatabase"})
    assert "nosuchdatabase" in asked


async def test_missing_optional_parts_are_said(
    lab: Lab, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A query backend that is asked for and not there: at start.
    monkeypatch.setattr(onnx, "available", lambda *_: None)
    for settings in (
        EmbeddingSettings(backend="onnx"),
        EmbeddingSettings(query_backend="onnx"),
    ):
        with pytest.raises(MemoryConfigurationError, match=r"orchestrata-memory\[onnx\]"):
            build_embedder(settings)
    # One that is taken where it is there: health names what serves instead.
    quiet = build_embedder(EmbeddingSettings())
    assert quiet.query_backend == "sentence-transformers"
    # A stemmer that does not exist: at start.
    with pytest.raises(MemoryConfigurationError, match="language"):
        await lab.start(search={"language": "klingon"})
    # A model whose files are missing: in health, and not as an error of a store.
    model = MoodyModel()
    model.unloadable = True
    container = lab.container()
    use_model(container, model)
    engine = await lab.start(container)
    with as_():
        await engine.store("kept")
        assert await engine.settle()
        assert await engine.search("kept")
    health = await engine.get_health()
    assert health.parts["embedding"].status is HealthStatus.UNHEALTHY
    assert "its files are not there" in health.parts["embedding"].message


async def test_abstractive_summaries_without_their_package_are_said(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MemoryConfigurationError, match=r"anthropic"):
        await lab.start(summary={"abstractive": True, "anthropic_api_key": "not-a-key"})
