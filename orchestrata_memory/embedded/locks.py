"""Locks on files, which the system drops when their holder dies, however it dies."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from orchestrata_memory.errors import MemoryConfigurationError


class FileLock:
    """An advisory lock on a file; the file stays.

    Held by this object until `release`, and by every process that inherited its descriptor.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """For handing the lock to a child process.

        Raises:
            RuntimeError: The lock is not held.
        """
        if self._descriptor is None:
            raise RuntimeError(f"the lock {self._path.name} is not held")
        return self._descriptor

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor is not None

    def try_exclusive(self) -> bool:
        """Take it for oneself, if nobody has it; does not wait."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take it beside others who share it; does not wait."""
        return self._try(fcntl.LOCK_SH)

    def release(self) -> None:
        """Let go; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _try(self, kind: int) -> bool:
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            if error.errno in {errno.ENOLCK, errno.ENOTSUP}:
                raise MemoryConfigurationError(
                    f"the file system of {self._path.parent} has no file locks: choose a data "
                    "directory on a local disk (ORCHESTRATA_MEMORY_DATA_DIR)"
                ) from error
            raise
        self._descriptor = descriptor
        return True


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock, in whatever way, at this moment."""
    probe = FileLock(path)
    free = probe.try_exclusive()
    probe.release()
    return not free


def is_owned(path: Path) -> bool:
    """Whether somebody holds the lock for itself; two who ask at once do not see each other."""
    probe = FileLock(path)
    free = probe.try_shared()
    probe.release()
    return not free
