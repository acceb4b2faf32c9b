"""The connection to the graph: sessions, time limits, retries, and errors translated.

Every session names the configured database. All statements go to the leader of a cluster: a
follower may lag behind what another process was told is safe in cold.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from neo4j import (
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncSession,
    NotificationMinimumSeverity,
    Query,
    unit_of_work,
)
from neo4j.exceptions import ConfigurationError

from orchestrata_memory.cold.address import GraphAddress
from orchestrata_memory.cold.dialect import Dialect, Row, dialect_for
from orchestrata_memory.cold.failures import (
    BadData,
    DriverFailure,
    code_of,
    is_login_problem,
    is_missing_database,
    is_temporary,
    translated,
)
from orchestrata_memory.errors import MemoryConfigurationError, MemoryUnavailableError

T = TypeVar("T")

Work = Callable[[AsyncManagedTransaction], Awaitable[T]]

_LIVENESS_SECONDS = 15.0
_RETRY_SECONDS = 5.0
_READ_ATTEMPTS = 2
_WRITE_ATTEMPTS = 12
_PAUSE_SECONDS = 0.01
_PAUSE_LIMIT_SECONDS = 0.5
_SCHEMA_SECONDS = 600.0


class GraphConnection:
    """One driver for one server and database.

    Args:
        address: The server.
        timeout: Seconds one operation may take, retries included.
        max_connections: Size of the pool.
    """

    def __init__(self, address: GraphAddress, *, timeout: float, max_connections: int) -> None:
        self._address = address
        self._timeout = timeout
        self._max_connections = max_connections
        self._driver: AsyncDriver | None = None
        self._dialect: Dialect | None = None
        self.agent = ""

    @property
    def dialect(self) -> Dialect:
        """The server's dialect; known from `open` on."""
        if self._dialect is None:
            raise MemoryUnavailableError("the graph", "the connection is not open")
        return self._dialect

    @property
    def database(self) -> str:
        """The database every session uses."""
        return self._address.database or self.dialect.default_database

    async def open(self) -> None:
        """Connect and learn the dialect.

        Raises:
            MemoryConfigurationError: Wrong login, wrong address form, no such database.
            MemoryUnavailableError: The server cannot be reached.
        """
        if self._driver is not None:
            return
        driver = self._make_driver()
        try:
            async with asyncio.timeout(self._timeout):
                info = await driver.get_server_info()
                self.agent = info.agent
                self._dialect = dialect_for(self._address, info.agent, timeout=_SCHEMA_SECONDS)
                self._driver = driver
                await self._once("RETURN 1", {}, self._timeout)
        except DriverFailure as error:
            await self.close()
            await driver.close()
            raise translated(error, opening=True) from error
        except BaseException:
            await self.close()
            await driver.close()
            raise

    async def close(self) -> None:
        """Close every connection; idempotent."""
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close()

    async def read(self, text: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Run one statement that reads, in one round trip, and give its rows.

        Tried once more when the connection was lost.
        """
        attempt = 1
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    try:
                        return await self._once(text, parameters, self._timeout)
                    except DriverFailure as error:
                        if attempt >= _READ_ATTEMPTS or not self._may_repeat(error):
                            raise
                        attempt += 1
        except (*DriverFailure, *BadData) as error:
            raise translated(error) from error

    async def write(self, work: Work[T]) -> T:
        """Run `work` in one transaction, again where it met another one.

        Raises:
            Neo4jError: The data were refused; not translated, so that a batch can be divided.
            MemoryUnavailableError: Nothing is confirmed.
        """
        attempt = 1
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    try:
                        return await self._transaction(work)
                    except DriverFailure as error:
                        if attempt >= _WRITE_ATTEMPTS or not self.dialect.is_collision(error):
                            raise
                        await asyncio.sleep(_pause(attempt))
                        attempt += 1
        except DriverFailure as error:
            if is_temporary(error) or is_login_problem(error) or is_missing_database(error):
                raise translated(error) from error
            if self.dialect.is_collision(error):
                raise MemoryUnavailableError(
                    "the graph", f"other writers were always faster ({code_of(error)})"
                ) from error
            raise

    async def at_length(self, text: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Run one statement that may take minutes, such as making an index; untranslated."""
        return await self._once(text, parameters, _SCHEMA_SECONDS)

    def _may_repeat(self, error: BaseException) -> bool:
        if isinstance(error, TimeoutError):
            return False
        return is_temporary(error) or self.dialect.is_collision(error)

    async def _once(self, text: str, parameters: Mapping[str, Any], seconds: float) -> list[Row]:
        async with self._session() as session:
            result = await session.run(Query(text, timeout=seconds), dict(parameters))
            return [record.values() async for record in result]

    async def _transaction(self, work: Work[T]) -> T:
        bounded = unit_of_work(timeout=self._timeout)(work)
        async with self._session() as session:
            return await session.execute_write(bounded)

    def _session(self) -> AsyncSession:
        if self._driver is None:
            raise MemoryUnavailableError("the graph", "the connection is not open")
        return self._driver.session(
            database=self.database, default_access_mode=WRITE_ACCESS, fetch_size=-1
        )

    def _make_driver(self) -> AsyncDriver:
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        address = self._address
        auth = (address.username, address.password) if address.password else None
        try:
            return AsyncGraphDatabase.driver(
                address.uri,
                auth=auth,
                user_agent="orchestrata-memory",
                max_connection_pool_size=self._max_connections,
                connection_timeout=min(5.0, self._timeout),
                connection_acquisition_timeout=self._timeout,
                liveness_check_timeout=_LIVENESS_SECONDS,
                max_transaction_retry_time=min(_RETRY_SECONDS, self._timeout / 2),
                initial_retry_delay=_PAUSE_SECONDS * 2,
                retry_delay_jitter_factor=0.5,
                notifications_min_severity=NotificationMinimumSeverity.OFF,
                warn_notification_severity=NotificationMinimumSeverity.OFF,
            )
        except (ConfigurationError, ValueError, TypeError) as error:
            raise MemoryConfigurationError(f"graph.uri: {error}") from error


def _pause(attempt: int) -> float:
    """Seconds before the next try: longer each time, and never the same for two writers."""
    limit = min(_PAUSE_LIMIT_SECONDS, _PAUSE_SECONDS * 2.0**attempt)
    return random.uniform(limit / 4, limit)  # noqa: S311 - no secret
