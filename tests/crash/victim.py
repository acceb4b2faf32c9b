"""The engine as a process of its own, writing as fast as it can until it is killed.

Run as ``python -m tests.crash.victim SETTINGS.json LEDGER SEED``. It never ends by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrata_memory.cold.base import ColdWrite
from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.container import build_engine
from orchestrata_memory.engine.engine import MemoryEngine
from orchestrata_memory.errors import MemoryEngineError
from orchestrata_memory.models import MemoryContext, MemoryEntry, memory_context
from tests.crash.ledger import LedgerWriter

WRITERS = 6
VOLKS = ("ENG:ALPHA", "ENG:BETA", "ENG:GAMMA")
_PAUSE_AFTER_ERROR = 0.05


class Writer:
    """One Volk at work: stores, updates, shares, deletes, delegates, closes its sessions."""

    def __init__(self, engine: MemoryEngine, ledger: LedgerWriter, number: int, seed: int) -> None:
        self._engine = engine
        self._ledger = ledger
        self._random = random.Random(f"{seed}-{number}")
        self._prefix = f"w{seed}-{number}"
        self._number = number
        self._count = 0
        self._session = 0
        self._live: list[MemoryEntry] = []

    async def run(self) -> None:
        while True:
            volk = VOLKS[self._number % len(VOLKS)]
            context = MemoryContext(
                volk_id=volk,
                session_id=f"{self._prefix}-s{self._session}",
                task_id=f"{self._prefix}-t",
                project_id=f"p{self._number % 2}",
            )
            with memory_context(context):
                try:
                    await self._step(volk)
                except MemoryEngineError:
                    await asyncio.sleep(_PAUSE_AFTER_ERROR)

    async def _step(self, volk: str) -> None:
        die = self._random.random()
        if die < 0.55 or len(self._live) < 3:
            await self._store()
        elif die < 0.72:
            await self._update()
        elif die < 0.80:
            await self._share()
        elif die < 0.90:
            await self._delete()
        elif die < 0.96:
            await self._delegate(volk)
        else:
            await self._close()

    async def _store(self) -> None:
        self._count += 1
        key = f"{self._prefix}-{self._count}"
        content = f"memory {self._count} of {self._prefix}: {self._random.random()}"
        state = {"content": content, "shared_with": [], "version": 1}
        tags = [f"tag{self._count % 5}"]
        if self._random.random() < 0.5:
            # A generated key is known only with the answer: before it nothing is promised.
            entry = await self._engine.store(content, tags=tags)
        else:
            self._intend(key, state)
            entry = await self._engine.store(content, key=key, tags=tags)
        self._live.append(entry)
        self._acknowledge(entry.key, state)

    async def _update(self) -> None:
        at = self._pick()
        entry = self._live[at]
        content = f"{entry.content} +{self._random.randrange(10)}"
        state = self._state(entry, content=content, version=entry.version + 1)
        self._intend(entry.key, state)
        self._live.pop(at)
        changed = await self._engine.update(entry.key, content=content)
        self._live.append(changed)
        self._acknowledge(entry.key, state)

    async def _share(self) -> None:
        at = self._pick()
        entry = self._live[at]
        target = self._random.choice([v for v in VOLKS if v != entry.volk_id])
        if target in entry.shared_with:
            return
        readers = sorted({*entry.shared_with, target})
        state = self._state(entry, shared_with=readers, version=entry.version + 1)
        self._intend(entry.key, state)
        self._live.pop(at)
        self._live.append(await self._engine.share(entry.key, target))
        self._acknowledge(entry.key, state)

    async def _delete(self) -> None:
        entry = self._live.pop(self._pick())
        self._intend(entry.key, None)
        await self._engine.delete(entry.key)
        self._acknowledge(entry.key, None)

    async def _delegate(self, volk: str) -> None:
        # Pairs are told apart by writer, so that each has one writer only.
        delegate = f"DEL:{self._number}"
        stands = self._random.random() < 0.7
        self._ledger.write(kind="delegation-intent", delegator=volk, delegate=delegate)
        if stands:
            expires = datetime.now(UTC) + timedelta(days=1)
            await self._engine.delegate(delegate, expires_at=expires)
        else:
            await self._engine.revoke(delegate)
        self._ledger.write(kind="delegation", delegator=volk, delegate=delegate, stands=stands)

    async def _close(self) -> None:
        session_id = f"{self._prefix}-s{self._session}"
        self._session += 1
        await self._engine.close_session(session_id)
        self._ledger.write(kind="closed", session_id=session_id)

    def _pick(self) -> int:
        return self._random.randrange(len(self._live))

    def _state(self, entry: MemoryEntry, **changes: Any) -> dict[str, Any]:
        state = {
            "content": entry.content,
            "shared_with": list(entry.shared_with),
            "version": entry.version,
        }
        return {**state, **changes}

    def _intend(self, key: str, state: dict[str, Any] | None) -> None:
        self._ledger.write(kind="intent", key=key, state=state)

    def _acknowledge(self, key: str, state: dict[str, Any] | None) -> None:
        self._ledger.write(kind="ack", key=key, state=state)


class BatchDeath:
    """Kills this process in the middle of writing a batch to the graph, once told to by SIGUSR1."""

    def __init__(self, engine: MemoryEngine, ledger: LedgerWriter) -> None:
        self._apply = engine.parts.cold.apply
        self._ledger = ledger
        self._wanted = False
        engine.parts.cold.apply = self._marked  # type: ignore[method-assign]
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._arm)

    def _arm(self) -> None:
        self._wanted = True

    async def _marked(self, writes: Sequence[ColdWrite]) -> Mapping[str, str]:
        self._ledger.write(kind="batch", open=True)
        death = self._death() if self._wanted and len(writes) > 1 else None
        try:
            return await self._apply(writes)
        finally:
            if death is not None:
                death.cancel()
            self._ledger.write(kind="batch", open=False)

    def _death(self) -> asyncio.TimerHandle:
        delay = random.random() * 0.02
        return asyncio.get_running_loop().call_later(delay, os.kill, os.getpid(), signal.SIGKILL)


async def work(settings: MemoryEngineSettings, ledger: LedgerWriter, seed: int) -> None:
    async with build_engine(settings) as engine:
        BatchDeath(engine, ledger)
        await asyncio.gather(
            *(Writer(engine, ledger, number, seed).run() for number in range(WRITERS))
        )


def main(settings_path: str, ledger_path: str, seed: str) -> None:
    settings = MemoryEngineSettings.model_validate(json.loads(Path(settings_path).read_text()))
    asyncio.run(work(settings, LedgerWriter(Path(ledger_path)), int(seed)))


if __name__ == "__main__":
    main(*sys.argv[1:])
