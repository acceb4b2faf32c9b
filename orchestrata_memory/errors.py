"""Every error the engine raises on purpose, under one root.

A message names the key, field, rule or limit and says what to do next. It never carries content
of a memory, a query text or a secret, so it may be logged and shown to any caller.
"""

from __future__ import annotations

HOT_TIER = "Redis"
COLD_TIER = "the graph"
"""How the tiers are called in errors (`MemoryUnavailableError.part`)."""


class MemoryEngineError(Exception):
    """Root of all errors of the engine."""


class MemoryValidationError(MemoryEngineError, ValueError):
    """An argument breaks a rule; nothing was changed.

    Attributes:
        field: Name of the argument or the path of the metadata field at fault.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class MemoryContextError(MemoryEngineError):
    """No caller is set for the current task."""


class MemoryNotFoundError(MemoryEngineError, KeyError):
    """An update or share named a key that does not exist (or no longer)."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no memory has the key {key!r}")
        self.key = key

    def __str__(self) -> str:
        return str(self.args[0])


class MemoryKeyExistsError(MemoryEngineError):
    """An explicit key is taken; choose another one or update the entry."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} is taken: choose another one, or update the entry")
        self.key = key


class MemoryAccessDeniedError(MemoryEngineError, PermissionError):
    """The rules give no permission.

    Attributes:
        volk_id: Who asked.
        rule: The predicate that gave no answer, such as ``can_read_memory``.
        key: The key it was asked about, if any.
    """

    def __init__(self, volk_id: str, rule: str, key: str | None = None, reason: str = "") -> None:
        about = f" for the key {key!r}" if key else ""
        why = f": {reason}" if reason else ""
        super().__init__(f"{rule} does not hold for {volk_id!r}{about}{why}")
        self.volk_id = volk_id
        self.rule = rule
        self.key = key
        self.reason = reason


class MemoryConflictError(MemoryEngineError):
    """The entry changed at the same moment, more often than the engine retries; try again."""


class MemoryUnavailableError(MemoryEngineError, ConnectionError):
    """A tier or part cannot be reached now; the operation was not done."""

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(f"{part} is unavailable: {problem}")
        self.part = part


class MemoryBackpressureError(MemoryUnavailableError):
    """The outbox is full because the graph falls behind; slow down and try again.

    Attributes:
        retry_after: Suggested wait in seconds.
    """

    def __init__(self, limit: int, retry_after: float = 1.0) -> None:
        super().__init__(
            "the outbox",
            f"it holds its limit of {limit} records; try again in {retry_after:g} s",
        )
        self.limit = limit
        self.retry_after = retry_after


class MemoryConfigurationError(MemoryEngineError):
    """The configuration, an installed part or a server's settings do not allow a safe start."""


class MemoryLifecycleError(MemoryEngineError):
    """An operation came before ``start`` or after ``stop``."""


class MemoryEmbeddingError(MemoryEngineError):
    """A text could not be embedded, or a vector does not fit the stored ones."""


class MemoryGovernanceError(MemoryEngineError):
    """The rules could not be asked (missing Prolog, broken rule file); nothing is permitted."""


class MemoryAuditError(MemoryEngineError):
    """An audit record could be written nowhere; the operation was not done."""


class MemoryStorageError(MemoryEngineError):
    """A store answered with an error that trying again will not mend."""
