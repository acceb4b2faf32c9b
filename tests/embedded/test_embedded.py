"""The embedded servers, started for real."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import neo4j
import psutil
import pytest
import redis.asyncio

from orchestrata_memory.config.settings import EmbeddedSettings
from orchestrata_memory.embedded import EmbeddedServers
from orchestrata_memory.embedded import part as part_module
from orchestrata_memory.embedded.layout import PartFolder, ServerState
from orchestrata_memory.errors import MemoryConfigurationError, MemoryUnavailableError

pytestmark = pytest.mark.servers

ENGINE = Path(__file__).with_name("engine_process.py")
MakeServers = Callable[..., EmbeddedServers]


@pytest.fixture
async def make_servers(tmp_path: Path) -> AsyncIterator[MakeServers]:
    """Embedded servers of one fresh data directory; all are down afterwards."""
    made: list[EmbeddedServers] = []

    def make(*, graph: bool = False, **settings: object) -> EmbeddedServers:
        servers = EmbeddedServers(
            tmp_path / "data dir", EmbeddedSettings.model_validate(settings), graph=graph
        )
        made.append(servers)
        return servers

    yield make
    await asyncio.gather(*(servers.stop() for servers in made))
    await asyncio.gather(*(servers.stop(wait=True) for servers in made))


async def set_key(servers: EmbeddedServers, name: str, value: str) -> None:
    async with client_of(servers) as client:
        await client.set(name, value)


async def get_key(servers: EmbeddedServers, name: str) -> str | None:
    async with client_of(servers) as client:
        return await client.get(name)


async def first_answer(servers: EmbeddedServers, name: str) -> str | None:
    """The value once the server answers again, at the address it had."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await get_key(servers, name)
            except redis.exceptions.RedisError:
                await asyncio.sleep(0.05)


def client_of(servers: EmbeddedServers) -> redis.asyncio.Redis:
    url = servers.addresses.redis_url
    assert url is not None
    return redis.asyncio.Redis.from_url(url, decode_responses=True)


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def eventually(holds: Callable[[], object], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_both_serve_and_keep_data_over_a_stop(make_servers: MakeServers) -> None:
    servers = make_servers(graph=True)
    first = await servers.start()
    assert first.graph is not None
    await set_key(servers, "a", "1")
    await _graph(first.graph, "CREATE (:Probe {n: 1})")
    await servers.stop(wait=True)
    assert {name: each.phase for name, each in (await servers.status()).items()} == {
        "redis": "stopped",
        "graph": "stopped",
    }

    second = await servers.start()
    assert second.graph is not None
    assert second.graph.password == first.graph.password
    assert await get_key(servers, "a") == "1"
    assert await _graph(second.graph, "MATCH (p:Probe) RETURN p.n AS n") == [1]


async def test_redis_promises_what_the_engine_needs(make_servers: MakeServers) -> None:
    servers = make_servers()
    await servers.start()
    async with client_of(servers) as client:
        config = await client.config_get("*")
    assert config["appendonly"] == "yes"
    assert config["appendfsync"] == "always"
    assert config["maxmemory-policy"] == "noeviction"
    assert config["bind"] == "127.0.0.1"
    assert config["protected-mode"] == "yes"


async def test_nobody_else_can_log_in_or_read_the_password(
    make_servers: MakeServers, tmp_path: Path
) -> None:
    servers = make_servers()
    await servers.start()
    url = servers.addresses.redis_url
    assert url is not None
    port = url.rsplit(":", 1)[1]
    async with redis.asyncio.Redis.from_url(f"redis://127.0.0.1:{port}") as stranger:
        with pytest.raises(redis.exceptions.AuthenticationError):
            await stranger.ping()

    password = url.split(":")[2].split("@")[0]
    holders = [
        path
        for path in (tmp_path / "data dir").rglob("*")
        if path.is_file() and password.encode() in path.read_bytes()
    ]
    assert holders
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holders)
    status = (await servers.status())["redis"]
    commands = [psutil.Process(pid).cmdline() for pid in (status.server_pid, status.supervisor_pid)]
    assert password not in str(commands)
    assert password not in str(servers.addresses)


async def test_two_engines_share_the_servers_until_both_have_gone(
    make_servers: MakeServers,
) -> None:
    first, second = make_servers(), make_servers()
    addresses = await asyncio.gather(first.start(), second.start())
    assert addresses[0] == addresses[1]
    pid = (await first.status())["redis"].server_pid

    await first.stop()
    await asyncio.sleep(2.5)  # more than the supervisor needs to look for users
    await set_key(second, "still", "here")
    assert (await second.status())["redis"].server_pid == pid

    await second.stop()
    await eventually(lambda: gone(pid))


async def test_a_late_engine_starts_them_anew_while_they_stop(make_servers: MakeServers) -> None:
    servers = make_servers()
    for round_number in range(4):
        await servers.start()
        await set_key(servers, "round", str(round_number))
        await servers.stop()
        await asyncio.sleep(0.35 * round_number)
    await servers.start()
    assert await get_key(servers, "round") == "3"


async def test_an_engine_killed_with_sigkill_loses_nothing(
    make_servers: MakeServers, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ENGINE), str(tmp_path / "data dir")),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    servers = make_servers()
    server_pid = (await servers.status())["redis"].server_pid
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert url
    await eventually(lambda: gone(server_pid))  # stopped, as nobody uses it

    await servers.start()
    assert await get_key(servers, "written") == "before the kill"


async def test_a_killed_supervisor_takes_its_server_along_and_is_replaced(
    make_servers: MakeServers,
) -> None:
    servers = make_servers()
    await servers.start()
    await set_key(servers, "a", "1")
    before = (await servers.status())["redis"]
    os.kill(before.supervisor_pid, signal.SIGKILL)
    await eventually(lambda: gone(before.supervisor_pid))

    other = make_servers()
    await other.start()
    after = (await other.status())["redis"]
    assert after.supervisor_pid != before.supervisor_pid
    assert after.server_pid != before.server_pid
    assert gone(before.server_pid)
    assert await get_key(other, "a") == "1"


async def test_an_engine_whose_supervisor_was_killed_gets_its_server_back(
    make_servers: MakeServers,
) -> None:
    servers = make_servers()
    await servers.start()
    await set_key(servers, "a", "1")
    os.kill((await servers.status())["redis"].supervisor_pid, signal.SIGKILL)
    await asyncio.sleep(1)
    assert await first_answer(servers, "a") == "1"


async def test_an_engine_short_of_files_watches_on(
    make_servers: MakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = make_servers()
    await servers.start()
    await set_key(servers, "a", "1")

    def none_left(_: Path) -> bool:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as short:
        short.setattr(part_module, "is_owned", none_left)
        await asyncio.sleep(1.5)
    before = (await servers.status())["redis"]
    os.kill(before.supervisor_pid, signal.SIGKILL)
    await eventually(lambda: gone(before.server_pid))
    assert await first_answer(servers, "a") == "1"
    await servers.stop(wait=True)
    assert (await servers.status())["redis"].phase == "stopped"


async def test_a_server_that_moved_to_another_port_is_told_once(
    make_servers: MakeServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    servers = make_servers()
    await servers.start()
    folder = PartFolder(tmp_path / "data dir", "redis")
    state = folder.read_state()
    assert state is not None
    folder.write_state(state.model_copy(update={"port": state.port + 1}))
    await asyncio.sleep(2.5)
    folder.write_state(state)
    told = [record.message for record in caplog.records if "is now at port" in record.message]
    assert len(told) == 1
    assert f"{state.port + 1}, as port {state.port} " in told[0]


async def test_a_server_that_ignores_its_supervisors_death_is_killed_before_a_new_one(
    make_servers: MakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = make_servers()
    await servers.start()
    await set_key(servers, "a", "1")
    before = (await servers.status())["redis"]
    os.kill(before.server_pid, signal.SIGSTOP)  # it cannot act on SIGTERM
    os.kill(before.supervisor_pid, signal.SIGKILL)
    await eventually(lambda: gone(before.supervisor_pid))

    # A second supervisor must never run a second server on the same append-only file.
    other = make_servers()
    start = asyncio.create_task(other.start())
    await asyncio.sleep(3)
    assert not start.done()
    os.kill(before.server_pid, signal.SIGCONT)
    await start
    assert gone(before.server_pid)
    assert await get_key(other, "a") == "1"


async def test_a_killed_server_comes_back_at_the_same_address(make_servers: MakeServers) -> None:
    servers = make_servers()
    await servers.start()
    await set_key(servers, "a", "1")
    pid = (await servers.status())["redis"].server_pid
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: gone(pid))
    assert await first_answer(servers, "a") == "1"


async def test_a_stale_state_file_is_not_believed(
    make_servers: MakeServers, tmp_path: Path
) -> None:
    folder = PartFolder(tmp_path / "data dir", "redis")
    folder.prepare()
    folder.write_state(
        ServerState(
            phase="ready",
            supervisor_pid=os.getpid(),  # lives, but is no supervisor
            server_pid=os.getpid(),
            server_created=1.0,
            port=1,
        )
    )
    servers = make_servers()
    assert (await servers.status())["redis"].phase == "stopped"
    await servers.start()
    await set_key(servers, "a", "1")


async def test_they_linger_for_the_next_user(make_servers: MakeServers) -> None:
    servers = make_servers(linger_seconds=4)
    await servers.start()
    pid = (await servers.status())["redis"].server_pid
    await servers.stop()
    await asyncio.sleep(2.5)
    await servers.start()
    assert (await servers.status())["redis"].server_pid == pid
    await servers.stop()
    await eventually(lambda: gone(pid))


async def test_weaker_durability_is_not_shared_silently(make_servers: MakeServers) -> None:
    weak = make_servers(fsync="everysec")
    await weak.start()
    with pytest.raises(MemoryConfigurationError, match=r"embedded\.fsync"):
        await make_servers(fsync="always").start()
    await set_key(weak, "a", "1")


async def test_only_what_was_asked_for_runs(make_servers: MakeServers, tmp_path: Path) -> None:
    servers = make_servers()
    addresses = await servers.start()
    assert addresses.graph is None
    assert not (tmp_path / "data dir" / "graph").exists()


async def test_an_unusable_data_directory_is_named(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    with pytest.raises(
        MemoryConfigurationError, match=r"embedded\.data_dir.*ORCHESTRATA"
    ) as caught:
        await EmbeddedServers(occupied / "data").start()
    assert str(occupied) in str(caught.value)


async def test_a_server_that_cannot_start_says_why_with_its_log(
    make_servers: MakeServers, tmp_path: Path
) -> None:
    servers = make_servers()
    await servers.start()
    await set_key(servers, "a", "1")
    await servers.stop(wait=True)
    manifest = next((tmp_path / "data dir" / "redis").rglob("*.manifest"))
    healthy = manifest.read_bytes()
    manifest.write_bytes(b"nonsense\n")
    with pytest.raises(MemoryUnavailableError, match=r"(?s)redis.*manifest"):
        await servers.start()
    manifest.write_bytes(healthy)
    await servers.start()
    assert await get_key(servers, "a") == "1"


async def test_a_cancelled_start_leaves_no_user_behind(make_servers: MakeServers) -> None:
    servers = make_servers()
    start = asyncio.create_task(servers.start())
    await asyncio.sleep(0.3)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    await servers.stop(wait=True)
    assert (await servers.status())["redis"].phase == "stopped"


async def _graph(address: object, query: str) -> list[object]:
    uri, auth = address.uri, (address.username, address.password)
    async with neo4j.AsyncGraphDatabase.driver(uri, auth=auth) as driver:
        answer = await driver.execute_query(query, database_=address.database)
    return [record["n"] for record in answer.records if "n" in record.keys()]  # noqa: SIM118


async def test_a_redis_installed_later_does_not_get_the_files_of_valkey(
    make_servers: MakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on PATH that could be taken by mistake")
    with monkeypatch.context() as without_redis:
        without_redis.setenv("PATH", "")
        async with make_servers() as servers:
            await set_key(servers, "kept", "yes")
        await servers.stop(wait=True)
    async with make_servers() as servers, client_of(servers) as client:
        assert await client.get("kept") == "yes"
