"""Redis's errors as the engine's, translated once, here.

The server's own text is never repeated in a message: it stays in the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as driver

from orchestrata_memory.errors import MemoryEngineError, MemoryStorageError, MemoryUnavailableError

PART = "Redis"

_BY_CODE = {
    "OOM": "it is full (maxmemory); free memory or raise the limit",
    "READONLY": "it is read-only (a replica); point the engine at the master",
    "LOADING": "it is loading its data; try again in a moment",
    "MASTERDOWN": "it is a replica without its master",
    "MISCONF": "it cannot write to its disk; see its log",
    "NOREPLICAS": "too few of its replicas are in reach",
    "BUSY": "a script holds it up; try again in a moment",
    "TRYAGAIN": "it is being reorganised; try again in a moment",
    "CLUSTERDOWN": "it is a cluster node that is down",
    "NOAUTH": "it asks for a password",
    "WRONGPASS": "it refused the user name or password",
    "NOPERM": "its user lacks a permission",
    "UNKILLABLE": "a script holds it up; try again in a moment",
}

_BY_TYPE: tuple[tuple[type[driver.RedisError], str], ...] = (
    (driver.OutOfMemoryError, "OOM"),
    (driver.ReadOnlyError, "READONLY"),
    (driver.BusyLoadingError, "LOADING"),
    (driver.MasterDownError, "MASTERDOWN"),
    (driver.NoPermissionError, "NOPERM"),
    (driver.AuthorizationError, "NOPERM"),
    (driver.AuthenticationError, "WRONGPASS"),
)

AUTHENTICATION_CODES = frozenset({"NOAUTH", "WRONGPASS", "NOPERM"})


def code_of(error: driver.RedisError) -> str:
    """The error code the server answered with, such as ``OOM``, or an empty string."""
    for kind, code in _BY_TYPE:
        if isinstance(error, kind):
            return code
    first = str(error).split(" ", 1)[0]
    return first if first in _BY_CODE else ""


def translate(error: Exception) -> MemoryEngineError:
    """The engine's error for one of the driver's."""
    if isinstance(error, driver.RedisError) and (code := code_of(error)):
        return MemoryUnavailableError(PART, _BY_CODE[code])
    if isinstance(error, driver.TimeoutError | TimeoutError):
        return MemoryUnavailableError(PART, "it did not answer in time")
    if isinstance(error, driver.ConnectionError | OSError):
        return MemoryUnavailableError(PART, "it cannot be reached, or the connection broke")
    return MemoryStorageError(f"{PART} answered with an error ({type(error).__name__})")


@contextmanager
def translated() -> Iterator[None]:
    """Translate what the driver raises inside the block."""
    try:
        yield
    except (driver.RedisError, OSError, TimeoutError) as error:
        if isinstance(error, MemoryEngineError):
            raise
        raise translate(error) from error
