"""Rounds of writing, killing, restarting and checking.

A round starts the engine as its own process, lets it acknowledge at least a hundred operations,
kills a part at a random moment, restarts what died, drains, and checks the ledger of all rounds so
far against both tiers.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.container import build_engine
from tests.crash.checks import Findings, check
from tests.crash.ledger import Ledger
from tests.crash.victim import VOLKS, WRITERS
from tests.servers.graph import GraphServer
from tests.servers.redis import RedisServer

LEAST_ACKS = 100
_PATIENCE_SECONDS = 120.0
_ROOT = Path(__file__).parents[2]


class Target(StrEnum):
    """What a round kills."""

    ENGINE = "engine"
    BATCH = "engine in a batch"
    REDIS = "redis"
    GRAPH = "graph"
    ALL = "all together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """How one round went."""

    target: Target
    acks: int
    in_batch: bool
    findings: Findings
    recovery_seconds: float


def settings_for(redis: RedisServer, graph: GraphServer, folder: Path) -> dict[str, Any]:
    """Settings of the engine under test, as JSON."""
    volks = {volk: ["team_lead"] for volk in VOLKS}
    volks |= {f"DEL:{number}": [] for number in range(WRITERS)}
    return {
        "redis": {"url": redis.url},
        "graph": {
            "uri": graph.uri,
            "dialect": graph.dialect,
            "username": graph.username,
            "password": graph.password or None,
            "database": graph.database,
            "http_url": graph.http_url,
            "operation_timeout_seconds": 15,
        },
        "embedding": {"backend": "hashing"},
        "governance": {"volks": volks},
        "audit": {"file": str(folder / "audit.jsonl")},
        "worker": {
            "takeover_idle_seconds": 1.0,
            "retry_max_seconds": 0.5,
            "migration_timeout_seconds": 20,
        },
    }


class Harness:
    """Plays rounds on one Redis and one graph."""

    def __init__(self, redis: RedisServer, graph: GraphServer, folder: Path, seed: int) -> None:
        self._redis = redis
        self._graph = graph
        self._folder = folder
        self._seed = seed
        self._random = random.Random(seed)
        self._ledger = Ledger()
        self._settings = settings_for(redis, graph, folder)
        self._count = 0

    def plan(self, rounds: int) -> list[Target]:
        """Targets of so many rounds: each kind in turn, in a random order."""
        plan = [target for _ in range(rounds) for target in Target][:rounds]
        self._random.shuffle(plan)
        return plan

    def play(self, targets: Iterable[Target]) -> list[Round]:
        """Play one round for each target."""
        return [self.play_one(target) for target in targets]

    def play_one(self, target: Target) -> Round:
        """Play one round."""
        self._count += 1
        path = self._folder / f"ledger-{self._count}.jsonl"
        victim = self._start_victim(path)
        try:
            self._wait_for_acks(victim, path, LEAST_ACKS)
            time.sleep(self._random.random() * 1.5)
            self._kill(target, victim, path)
        finally:
            victim.kill()
            victim.wait()
        before = self._ledger.acks
        self._ledger.read(path)
        in_batch = self._ledger.batch_open
        started = time.monotonic()
        self._restart()
        findings = asyncio.run(self._recover_and_check())
        return Round(
            target=target,
            acks=self._ledger.acks - before,
            in_batch=in_batch,
            findings=findings,
            recovery_seconds=time.monotonic() - started,
        )

    def _start_victim(self, path: Path) -> subprocess.Popen[bytes]:
        settings = self._folder / "settings.json"
        settings.write_text(json.dumps(self._settings))
        command = [sys.executable, "-m", "tests.crash.victim", str(settings), str(path)]
        log = (self._folder / f"victim-{self._count}.log").open("wb")
        seed = str(self._seed * 1000 + self._count)
        return subprocess.Popen([*command, seed], cwd=_ROOT, stdout=log, stderr=log)

    def _wait_for_acks(self, victim: subprocess.Popen[bytes], path: Path, least: int) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while _acks(path) < least:
            if victim.poll() is not None:
                log = (self._folder / f"victim-{self._count}.log").read_text(errors="replace")
                raise AssertionError(f"the engine ended by itself:\n{log[-4000:]}")
            assert time.monotonic() < deadline, f"only {_acks(path)} acknowledgements in time"
            time.sleep(0.02)

    def _kill(self, target: Target, victim: subprocess.Popen[bytes], path: Path) -> None:
        match target:
            case Target.ENGINE:
                victim.kill()
            case Target.BATCH:
                victim.send_signal(signal.SIGUSR1)
                victim.wait(_PATIENCE_SECONDS)
            case Target.REDIS:
                self._redis.kill()
                self._outlive(victim, path, self._redis)
            case Target.GRAPH:
                self._graph.kill()
                self._outlive(victim, path, self._graph)
            case Target.ALL:
                kills = [victim.kill, self._redis.kill, self._graph.kill]
                self._random.shuffle(kills)
                for kill in kills:
                    kill()

    def _outlive(
        self,
        victim: subprocess.Popen[bytes],
        path: Path,
        server: RedisServer | GraphServer,
    ) -> None:
        """The engine lives through the death of a server and goes on once it is back."""
        time.sleep(self._random.random())
        server.start()
        self._wait_for_acks(victim, path, _acks(path) + LEAST_ACKS // 2)
        victim.kill()

    def _restart(self) -> None:
        for server in (self._redis, self._graph):
            if not server.running:
                server.start()

    async def _recover_and_check(self) -> Findings:
        settings = MemoryEngineSettings.model_validate(self._settings)
        async with build_engine(settings) as engine:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not await engine.settle(_PATIENCE_SECONDS):  # a graph may take long to get going
                assert time.monotonic() < deadline, "the outbox was not drained in time"
            while await engine.parts.hot.closed_sessions():
                assert time.monotonic() < deadline, "closed sessions did not move in time"
                await asyncio.sleep(0.1)
            return await check(engine, self._ledger, self._redis, self._graph)


def _acks(path: Path) -> int:
    if not path.exists():
        return 0
    raw = path.read_bytes()
    return raw.count(b'"kind": "ack"') + raw.count(b'"kind": "delegation"')
