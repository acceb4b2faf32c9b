"""The local file that takes audit records while Redis is away: append-only JSON lines.

Several processes may use one file. An append locks it, and a replay first takes the file away
under a name of its own, so that nothing is written into what is being replayed. A crash in between
leaves that name for the next replay; doing one twice is harmless, because a record is known by its
audit_id. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from uuid import uuid4

from orchestrata_memory.models import AuditRecord

_PRIVATE = 0o600
_PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records of a file that was taken away.

    Attributes:
        records: What could be read.
        damaged: Lines that could not, such as one torn by a crash in the middle of a write.
    """

    records: list[AuditRecord]
    damaged: int


class AuditFile:
    """Appends, and gives back for replay."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, records: Sequence[AuditRecord]) -> None:
        """Write and flush to the disk; on return the records survive a crash.

        Raises:
            OSError: They could not be written.
        """
        lines = "".join(_dump(record) + "\n" for record in records).encode()
        with self._locked() as descriptor:
            if _is_torn(descriptor):
                lines = b"\n" + lines  # the torn line stays alone instead of tearing the next
            _write_all(descriptor, lines)
            os.fsync(descriptor)

    def pending(self) -> bool:
        """Whether anything waits for replay."""
        try:
            if self.path.stat().st_size:
                return True
        except FileNotFoundError:
            pass
        return next(self._taken_paths(), None) is not None

    def take(self) -> list[Path]:
        """Take away what waits for replay, also what an earlier replay did not finish.

        Raises:
            OSError: It cannot be renamed.
        """
        if self.path.exists() and self.path.stat().st_size:
            with self._locked():
                self.path.rename(self.path.with_name(f"{self.path.name}.replay-{uuid4().hex}"))
        return sorted(self._taken_paths())

    def read(self, taken: Path, size: int) -> Iterator[Batch]:
        """The records of what was taken, at most `size` lines at a time.

        Raises:
            OSError: It cannot be read.
        """
        try:
            with taken.open("rb") as lines:
                while chunk := list(islice(lines, size)):
                    yield _parse(chunk)
        except FileNotFoundError:
            return  # another process was done with it first

    def done(self, taken: Path, *, damaged: int) -> None:
        """It stands elsewhere now. With damaged lines it is kept beside, for a person to look."""
        if damaged:
            taken.replace(self.path.with_name(f"{self.path.name}.damaged-{uuid4().hex}"))
        else:
            taken.unlink(missing_ok=True)

    def _taken_paths(self) -> Iterator[Path]:
        return self.path.parent.glob(f"{self.path.name}.replay-*")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, open for appending and locked, and surely the one under its name."""
        self.path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _PRIVATE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_named(descriptor, self.path):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)  # gives the lock back, too


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _is_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _dump(record: AuditRecord) -> str:
    fields = asdict(record)
    fields["at"] = record.at.isoformat(timespec="microseconds")
    return json.dumps(fields, separators=(",", ":"))


def _parse(lines: list[bytes]) -> Batch:
    records, damaged = [], 0
    for line in lines:
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            fields["at"] = datetime.fromisoformat(fields["at"])
            records.append(AuditRecord(**fields))
        except (ValueError, TypeError, KeyError):
            damaged += 1
    return Batch(records, damaged)
