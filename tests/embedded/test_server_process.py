"""A server's process: taken ports, and locks that outlive nobody."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrata_memory.embedded.kinds import ArcadeKind, Ports, RedisKind, ServerOptions
from orchestrata_memory.embedded.layout import PartFolder
from orchestrata_memory.embedded.locks import FileLock, is_locked, is_owned
from orchestrata_memory.embedded.server_process import ServerDiedError, ServerProcess

pytestmark = pytest.mark.servers


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize("part", ["redis", "graph"])
async def test_a_taken_port_is_noticed_as_such(tmp_path: Path, taken_port: int, part: str) -> None:
    folder = PartFolder(tmp_path, "redis" if part == "redis" else "graph")
    folder.prepare()
    kind = RedisKind(ServerOptions()) if part == "redis" else ArcadeKind(ServerOptions())
    ports = Ports(main=taken_port, http=kind.choose_ports().http)
    lock = FileLock(folder.server_lock)
    assert lock.try_exclusive()
    server = ServerProcess(kind, folder, folder.password())
    try:
        with pytest.raises(ServerDiedError):
            await server.start(ports, lock.descriptor)
        assert server.port_taken
        assert server.pid == 0
    finally:
        await server.stop()
        lock.release()


def test_a_lock_goes_with_its_holder_however_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            (
                "import sys, time, pathlib\n"
                "from orchestrata_memory.embedded.locks import FileLock\n"
                "lock = FileLock(pathlib.Path(sys.argv[1]))\n"
                "print(lock.try_exclusive(), flush=True)\n"
                "time.sleep(600)"
            ),
            str(path),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == b"True"
    assert is_locked(path)
    assert is_owned(path)
    assert not FileLock(path).try_shared()
    holder.kill()
    holder.wait()
    assert not is_locked(path)


def test_shared_holders_are_users_not_owners(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    one, two = FileLock(path), FileLock(path)
    assert one.try_shared()
    assert two.try_shared()
    assert is_locked(path)
    assert not is_owned(path)
    assert not FileLock(path).try_exclusive()
    one.release()
    assert is_locked(path)
    two.release()
    assert not is_locked(path)


def test_a_lock_is_not_inherited_by_accident(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_exclusive()
    assert not os.get_inheritable(lock.descriptor)
    lock.release()
    with pytest.raises(RuntimeError, match="not held"):
        _ = lock.descriptor
