"""What the engine under test was asked to do, and what it acknowledged.

One JSON line before each operation (the intent) and one after its acknowledgement, written with
`os.write`, so that a SIGKILL of the writer loses neither. Each key belongs to one writer that waits
for each answer, so a key has at most one operation in doubt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict


class State(TypedDict, total=False):
    """What a key must look like: its content, readers and version; absent: deleted or never."""

    content: str
    shared_with: list[str]
    version: int


class LedgerWriter:
    """Appends lines that survive the death of the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **line: Any) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


@dataclass(slots=True)
class Ledger:
    """The ledger read back.

    Attributes:
        acknowledged: Key to its last acknowledged state; None: deleted.
        doubtful: Key to the state it may have instead, from an operation without an answer.
        delegations: (delegator, delegate) to whether it stands, acknowledged.
        doubtful_delegations: Pairs whose last change has no answer.
        closed: Sessions whose close was acknowledged.
        acks: Number of acknowledgements.
        batch_open: A batch was being written to the graph when the process died.
    """

    acknowledged: dict[str, State | None] = field(default_factory=dict)
    doubtful: dict[str, State | None] = field(default_factory=dict)
    delegations: dict[tuple[str, str], bool] = field(default_factory=dict)
    doubtful_delegations: set[tuple[str, str]] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    acks: int = 0
    batch_open: bool = False

    def read(self, path: Path) -> None:
        """Take in one process's ledger."""
        self.batch_open = False
        for line in _lines(path):
            self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        match line["kind"]:
            case "intent":
                self.doubtful[line["key"]] = line["state"]
            case "ack":
                self.acks += 1
                self.acknowledged[line["key"]] = line["state"]
                self.doubtful.pop(line["key"], None)
            case "failed":
                # An error is no acknowledgement; the operation stays in doubt.
                pass
            case "delegation-intent":
                self.doubtful_delegations.add((line["delegator"], line["delegate"]))
            case "delegation":
                self.acks += 1
                pair = (line["delegator"], line["delegate"])
                self.delegations[pair] = line["stands"]
                self.doubtful_delegations.discard(pair)
            case "closed":
                self.acks += 1
                self.closed.add(line["session_id"])
            case "batch":
                self.batch_open = line["open"]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for raw in path.read_bytes().splitlines():
        try:
            yield json.loads(raw)
        except ValueError:
            continue  # the last line of a killed process may be torn
