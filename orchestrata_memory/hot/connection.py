"""The connection to Redis: URLs, pool, round trips, retries.

Retries: the driver's own are off, because it repeats a command whose outcome is unknown. Here a
command or script that is harmless when repeated is tried once more when the connection broke;
nothing is repeated after a timeout. An idle connection is checked before it is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from redis import exceptions as driver
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from orchestrata_memory.config.settings import RedisSettings
from orchestrata_memory.errors import MemoryConfigurationError
from orchestrata_memory.hot.failures import translated
from orchestrata_memory.hot.scripts import Script, script

try:
    from redis.driver_info import DriverInfo
except ImportError:  # before redis-py 7
    DriverInfo = None  # type: ignore[assignment,misc]

T = TypeVar("T")
Argument = str | bytes | int | float

HEALTH_CHECK_SECONDS = 15
"""An idle connection is pinged before use after this long."""

_PAUSE_SECONDS = 0.05

# Where it is not handed over, newer drivers read their own version from the disk with every
# connection, on the event loop.
_NAMED: dict[str, Any] = {} if DriverInfo is None else {"driver_info": DriverInfo()}
_SENTINEL_PORT = 26379


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """Where the server is. Not shown by `repr`: it may hold a password.

    Attributes:
        url: For one server: the URL as the driver takes it.
        sentinels: Host and port of each sentinel; empty for one server.
        master: Name of the master that the sentinels watch.
    """

    url: str
    sentinels: tuple[tuple[str, int], ...] = ()
    master: str = ""


def parse_url(url: str, sentinel_master: str | None = None) -> Address:
    """Understand a URL.

    One server: ``redis://``, ``rediss://`` (TLS) or ``unix://``, as the driver takes them, and
    ``valkey://``, ``valkeys://`` as other names of the first two. Sentinel:
    ``redis+sentinel://user:password@host:port,host:port/master?db=0`` (``rediss+sentinel://`` with
    TLS), user and password being those of the data servers, ``sentinel_username`` and
    ``sentinel_password`` in the query those of the sentinels; or a plain URL of one sentinel
    together with `sentinel_master`.

    Raises:
        MemoryConfigurationError: Not such a URL, or one of a cluster.
    """
    scheme = url.split("://", 1)[0].lower()
    if "cluster" in scheme:
        raise MemoryConfigurationError(
            "redis.url: a Redis Cluster is not supported yet (an operation's keys would have to "
            "share a hash slot); use one server, or Sentinel"
        )
    if scheme in {"redis+sentinel", "rediss+sentinel"} or sentinel_master:
        return _sentinel_address(url, sentinel_master)
    if scheme in {"valkey", "valkeys"}:
        url = ("redis" if scheme == "valkey" else "rediss") + url[len(scheme) :]
    elif scheme not in {"redis", "rediss", "unix"}:
        raise MemoryConfigurationError(
            "redis.url: begins with redis://, rediss://, unix:// or redis+sentinel://"
        )
    return Address(url)


def _sentinel_address(url: str, sentinel_master: str | None) -> Address:
    parts = urlsplit(url)
    path = parts.path.strip("/")
    named_in_path = parts.scheme.endswith("+sentinel")
    master = sentinel_master or (path if named_in_path else "")
    if not master:
        raise MemoryConfigurationError(
            "redis.url: names no master: redis+sentinel://host:port,host:port/master"
        )
    sentinels = []
    for host_and_port in parts.netloc.rpartition("@")[2].split(","):
        host, _, port = host_and_port.rpartition(":") if ":" in host_and_port else (
            host_and_port, "", str(_SENTINEL_PORT),
        )  # fmt: skip
        if not host or not port.isdigit():
            raise MemoryConfigurationError("redis.url: a sentinel is written host:port")
        sentinels.append((host.strip("[]"), int(port)))
    return Address(url, tuple(sentinels), unquote(master))


def _options(settings: RedisSettings) -> dict[str, Any]:
    timeout = settings.operation_timeout_seconds
    return {
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK_SECONDS,
        "max_connections": settings.max_connections + 1,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_timeout": False,
        **_NAMED,
    }


def _single(address: Address, settings: RedisSettings) -> Redis:
    try:
        pool = ConnectionPool.from_url(address.url, **_options(settings))
    except (ValueError, TypeError):
        # The driver's text may quote the URL, and with it the password: it is not passed on.
        raise MemoryConfigurationError("redis.url: cannot be understood") from None
    return Redis(connection_pool=pool)


def _through_sentinel(address: Address, settings: RedisSettings) -> tuple[Redis, Sentinel]:
    parts = urlsplit(address.url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    path = parts.path.strip("/")
    db = query.get("db") or (path if not parts.scheme.endswith("+sentinel") else "") or "0"
    tls = parts.scheme.startswith("rediss")
    options = _options(settings)
    sentinel_options: dict[str, Any] = {
        "socket_timeout": options["socket_timeout"],
        "socket_connect_timeout": options["socket_connect_timeout"],
        "username": query.get("sentinel_username"),
        "password": query.get("sentinel_password"),
        "ssl": tls,
        **_NAMED,
    }
    sentinel = Sentinel(address.sentinels, sentinel_kwargs=sentinel_options)  # type: ignore[no-untyped-call]
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    client = sentinel.master_for(
        address.master,
        db=int(db) if db.isdigit() else 0,
        username=unquote(user) or None,
        password=unquote(password) or None,
        ssl=tls,
        **options,
    )
    return client, sentinel


class Connection:
    """Round trips to the server; every method counts as one.

    Attributes:
        round_trips: How many were made, for tests and the bench. A retry counts too; loading the
            scripts of a server that does not know them (after its restart) does not.
    """

    def __init__(self, settings: RedisSettings, url: str) -> None:
        self._address = parse_url(url, settings.sentinel_master)
        self._settings = settings
        self._client: Redis | None = None
        self._sentinel: Sentinel | None = None
        self._slots = asyncio.Semaphore(settings.max_connections)
        self.round_trips = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    async def open(self) -> None:
        """Make the client; it connects with the first command."""
        if self._client is not None:
            return
        if self._address.sentinels:
            self._client, self._sentinel = _through_sentinel(self._address, self._settings)
        else:
            self._client = _single(self._address, self._settings)

    async def close(self) -> None:
        """Close every connection; idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose(close_connection_pool=True)
        sentinel, self._sentinel = self._sentinel, None
        for each in sentinel.sentinels if sentinel is not None else ():
            await each.aclose()

    @property
    def timeout_seconds(self) -> float:
        """How long one round trip may take."""
        return self._settings.operation_timeout_seconds

    @property
    def client(self) -> Redis:
        """The driver's client.

        Raises:
            MemoryConfigurationError: `open` was not called.
        """
        if self._client is None:
            raise MemoryConfigurationError("the hot store is not open: call open() first")
        return self._client

    async def command(self, *arguments: Argument, repeat: bool = True) -> Any:  # noqa: ANN401
        """One command; `repeat` says that doing it twice does no harm."""
        return await self._round_trip(lambda: self._send(*arguments), repeat=repeat)

    async def run(self, name: str, *arguments: Argument, repeat: bool = True) -> Any:  # noqa: ANN401
        """One script with its arguments.

        Returns:
            The script's answer: bytes, int, None or lists of them.
        """
        wanted = script(name)
        return await self._round_trip(lambda: self._evaluate(wanted, arguments), repeat=repeat)

    async def run_write(self, name: str, *arguments: Argument) -> tuple[Any, bool]:
        """One script that recognises its own repetition.

        Returns:
            The answer, and whether it came from a second try, which makes a refusal ambiguous.
        """
        wanted = script(name)
        tries = 0

        async def attempt() -> Any:  # noqa: ANN401
            nonlocal tries
            tries += 1
            return await self._evaluate(wanted, arguments)

        answer = await self._round_trip(attempt, repeat=True)
        return answer, tries > 1

    async def run_many(self, name: str, calls: Sequence[Sequence[Argument]]) -> list[Any]:
        """One script with several lists of arguments in one round trip; must be repeatable."""
        wanted = script(name)
        if len(calls) == 1:
            return [await self.run(name, *calls[0])]

        async def attempt() -> list[Any]:
            try:
                return await self._pipeline(
                    [("EVALSHA", wanted.digest, 0, *arguments) for arguments in calls]
                )
            except driver.NoScriptError:
                await self._send("SCRIPT LOAD", wanted.text)
                return await self._pipeline(
                    [("EVALSHA", wanted.digest, 0, *arguments) for arguments in calls]
                )

        return await self._round_trip(attempt, repeat=True)

    async def commands(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Several repeatable commands in one round trip, not atomic."""
        if not commands:
            return []
        return await self._round_trip(lambda: self._pipeline(commands), repeat=True)

    async def load(self, names: Sequence[str]) -> None:
        """Make the server know scripts beforehand."""
        with translated():
            for name in names:
                await self._send("SCRIPT LOAD", script(name).text)

    async def _send(self, *arguments: Argument) -> Any:  # noqa: ANN401
        return await self.client.execute_command(*arguments)  # type: ignore[no-untyped-call]

    async def _evaluate(self, wanted: Script, arguments: Sequence[Argument]) -> Any:  # noqa: ANN401
        try:
            return await self._send("EVALSHA", wanted.digest, 0, *arguments)
        except driver.NoScriptError:
            return await self._send("EVAL", wanted.text, 0, *arguments)

    async def _pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            # Raised here and not there: the driver's text would quote the commands' arguments.
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    async def _round_trip(self, attempt: Callable[[], Awaitable[T]], *, repeat: bool) -> T:
        with translated():
            async with self._slots:
                self.round_trips += 1
                try:
                    return await self._in_time(attempt)
                except (driver.ConnectionError, OSError) as error:
                    if not repeat or _not_worth_repeating(error):
                        raise
                await asyncio.sleep(_PAUSE_SECONDS)
                self.round_trips += 1
                return await self._in_time(attempt)

    async def _in_time(self, attempt: Callable[[], Awaitable[T]]) -> T:
        async with asyncio.timeout(self._settings.operation_timeout_seconds):
            return await attempt()


def _not_worth_repeating(error: Exception) -> bool:
    """A timeout, a refused password and a loading server are ConnectionErrors or OSErrors too."""
    return isinstance(
        error,
        TimeoutError | driver.TimeoutError | driver.AuthenticationError | driver.BusyLoadingError,
    )
