"""Exit codes and what leads to each."""

from __future__ import annotations

from enum import IntEnum

from orchestrata_memory import errors


class ExitCode(IntEnum):
    """What a process reports to its shell."""

    OK = 0
    NOTHING = 1
    USAGE = 2
    DENIED = 3
    UNAVAILABLE = 4
    CONFIGURATION = 5
    BUG = 70
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.NOTHING: "not found, or nothing to show",
    ExitCode.USAGE: "wrong usage, or an argument that breaks a rule",
    ExitCode.DENIED: "the rules give no permission",
    ExitCode.UNAVAILABLE: "a server cannot be reached or is busy: try again",
    ExitCode.CONFIGURATION: "the configuration or an installed part does not allow it",
    ExitCode.BUG: "an internal error: please report it",
}

_BY_ERROR: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (errors.MemoryNotFoundError, ExitCode.NOTHING),
    (errors.MemoryAccessDeniedError, ExitCode.DENIED),
    (errors.MemoryValidationError, ExitCode.USAGE),
    (errors.MemoryContextError, ExitCode.USAGE),
    (errors.MemoryKeyExistsError, ExitCode.USAGE),
    (errors.MemoryUnavailableError, ExitCode.UNAVAILABLE),
    (errors.MemoryConflictError, ExitCode.UNAVAILABLE),
    (errors.MemoryAuditError, ExitCode.UNAVAILABLE),
    (errors.MemoryStorageError, ExitCode.UNAVAILABLE),
    (errors.MemoryConfigurationError, ExitCode.CONFIGURATION),
    (errors.MemoryGovernanceError, ExitCode.CONFIGURATION),
    (errors.MemoryEmbeddingError, ExitCode.CONFIGURATION),
    (OSError, ExitCode.USAGE),
)


def exit_code_of(error: BaseException) -> ExitCode:
    """The exit code of an error; `ExitCode.BUG` for one that nobody expects."""
    for kind, code in _BY_ERROR:
        if isinstance(error, kind):
            return code
    return ExitCode.BUG


def describe() -> str:
    """The exit codes as a line of help."""
    return "; ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())
