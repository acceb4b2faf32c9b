"""The driver's errors as the engine's, translated once, with the cause kept.

Messages name the server's error code only: a server's own text may quote stored values.
"""

from __future__ import annotations

from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryEngineError,
    MemoryStorageError,
    MemoryUnavailableError,
)

PART = "the graph"

_NO_DATABASE = frozenset(
    {"Neo.ClientError.Database.DatabaseNotFound", "Neo.ClientError.Database.IllegalAliasChain"}
)
_AWAY = frozenset(
    {
        "Neo.ClientError.Cluster.NotALeader",
        "Neo.ClientError.Transaction.TransactionTimedOut",
        "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
        "Neo.DatabaseError.General.StorageDamageDetected",
        "Neo.DatabaseError.Statement.CodeGenerationFailed",
        "Neo.DatabaseError.Transaction.TransactionLogError",
        "Neo.DatabaseError.Transaction.TransactionStartFailed",
        "Neo.DatabaseError.Transaction.TransactionCommitFailed",
    }
)

DriverFailure = (DriverError, Neo4jError, OSError, TimeoutError)
"""What a call of the driver may raise on the server's or the connection's account."""

BadData = (ValueError, TypeError, OverflowError)
"""What the driver raises for a value that cannot be sent."""


def code_of(error: BaseException) -> str:
    """The server's error code, else the error's type."""
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else type(error).__name__


def is_login_problem(error: BaseException) -> bool:
    """Wrong name or password, or no right to do it."""
    return isinstance(error, AuthError) or code_of(error).startswith("Neo.ClientError.Security.")


def is_missing_database(error: BaseException) -> bool:
    """The configured database does not exist."""
    return code_of(error) in _NO_DATABASE


def is_temporary(error: BaseException) -> bool:
    """Trying again later may help."""
    if isinstance(error, ServiceUnavailable | SessionExpired | OSError | TimeoutError):
        return True
    if isinstance(error, Neo4jError | DriverError) and error.is_retryable():
        return True
    code = code_of(error)
    return code in _AWAY or code.startswith("Neo.TransientError.")


def translated(error: BaseException, *, opening: bool = False) -> MemoryEngineError:
    """The engine's error for a driver's one.

    Args:
        error: What the driver raised.
        opening: At open a refused login or a missing database is a matter of configuration;
            later it may pass, as when a password is being changed, and nothing must be given up.
    """
    code = code_of(error)
    for matter, setting in _matters_of_configuration(error, code):
        if opening:
            return MemoryConfigurationError(f"the graph {matter} ({code}): check {setting}")
        return MemoryUnavailableError(PART, f"it {matter} ({code})")
    if isinstance(error, ConfigurationError):
        return MemoryConfigurationError(f"graph: {error}")
    if is_temporary(error):
        timed_out = isinstance(error, TimeoutError)
        return MemoryUnavailableError(PART, "it did not answer in time" if timed_out else code)
    return MemoryStorageError(f"{PART} refused the operation ({code})")


def _matters_of_configuration(error: BaseException, code: str) -> list[tuple[str, str]]:
    if is_login_problem(error):
        return [("refused the login", "graph.username and graph.password")]
    if code in _NO_DATABASE:
        return [("has no such database", "graph.database")]
    return []
