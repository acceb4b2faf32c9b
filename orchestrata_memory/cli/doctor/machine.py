"""Checks of the machine: Python, platform, Prolog, data directory."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import psutil

from orchestrata_memory.cli.doctor.check import Check, fail, installed, ok, said, warn
from orchestrata_memory.config.environment import DATA_DIR
from orchestrata_memory.config.loader import PREFIX as SECTION_NAME
from orchestrata_memory.config.loader import suspicion
from orchestrata_memory.config.settings import GovernanceSettings
from orchestrata_memory.embedded.layout import default_data_dir
from orchestrata_memory.embedded.programs import ARCADEDB_GLIBC, platform_problem
from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance.prolog import PrologGovernance
from orchestrata_memory.kernel.directory import ConfiguredDirectory

OLDEST_PYTHON = (3, 11)
_PROLOG_PATIENCE_SECONDS = 20
_LEAST_FREE_BYTES = 1 << 30
_LEAST_MEMORY_BYTES = 2 << 30
_INSTALL_PROLOG = "apt-get install swi-prolog-nox (or your system's package of SWI-Prolog)"


async def config_file(file: Path) -> Check:
    """Whether the file has settings of the engine, and whether some may stand where none is read.

    What is wrong with it beyond that is an error before anything is examined.
    """
    suspect = suspicion(file)
    if suspect is None:
        return ok("config file", str(file))
    return warn(
        "config file",
        f"{file} has no {SECTION_NAME} section, so defaults hold; {suspect}",
        f"put what is meant for the engine under {SECTION_NAME}",
    )


async def python() -> Check:
    """The interpreter's version."""
    found = platform.python_version()
    if sys.version_info[:2] < OLDEST_PYTHON:
        return fail("Python", found, "use Python 3.11 or newer")
    return ok("Python", f"{found} ({sys.executable})")


async def machine(*, needs_embedded_graph: bool) -> Check:
    """System, processor, C library and memory."""
    libc = " ".join(platform.libc_ver()).strip() or "no glibc"
    memory = psutil.virtual_memory()
    detail = (
        f"{platform.system()} {platform.machine()}, {libc}, {psutil.cpu_count()} processors, "
        f"{memory.total / (1 << 30):.1f} GiB"
    )
    problem = platform_problem(ARCADEDB_GLIBC)
    if problem is not None:
        fix = "set runtime.memory_engine.graph.uri and redis.url to servers of your own"
        judge = fail if needs_embedded_graph else warn
        return judge("machine", f"{detail}; no embedded graph: {problem}", fix)
    if memory.available < _LEAST_MEMORY_BYTES:
        free = memory.available / (1 << 30)
        return warn("machine", f"{detail}, {free:.1f} GiB free", "free some memory: 2 GiB suffice")
    return ok("machine", detail)


async def prolog() -> Check:
    """SWI-Prolog and its bridge, tried in a process of its own."""
    bridge = installed("pyswip")
    if bridge is None:
        return fail("SWI-Prolog", "the package pyswip is not installed", "pip install pyswip")
    question = (
        "from pyswip import Prolog; p = Prolog(); "
        "print(next(iter(p.query('current_prolog_flag(version, V)')))['V'])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        question,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_PROLOG_PATIENCE_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return fail("SWI-Prolog", "it does not answer", f"reinstall it: {_INSTALL_PROLOG}")
    number = output.decode(errors="replace").strip()
    if process.returncode != 0 or not number.isdigit():
        where = "on PATH, but pyswip cannot use it" if shutil.which("swipl") else "not found"
        return fail("SWI-Prolog", where, _INSTALL_PROLOG)
    major, minor, patch = int(number) // 10000, int(number) // 100 % 100, int(number) % 100
    return ok("SWI-Prolog", f"{major}.{minor}.{patch}, pyswip {bridge}")


async def rules(settings: GovernanceSettings) -> Check:
    """The rules, loaded as an engine would load them."""
    governance = PrologGovernance(settings, ConfiguredDirectory(settings))
    try:
        await governance.open()
    except MemoryGovernanceError as error:
        fix = "mend it: see runtime.memory_engine.governance.rule_files"
        return fail("rules", said(error), fix if settings.rule_files else _INSTALL_PROLOG)
    await governance.close()
    own = ", ".join(str(file) for file in settings.rule_files)
    return ok("rules", f"the shipped ones{own and ' and ' + own}")


async def data_dir(configured: Path | None) -> Check:
    """Where embedded servers and the spare audit file live."""
    folder = configured or default_data_dir()
    fix = f"choose another with --data-dir or {DATA_DIR}"
    try:
        existing = _tried(folder)
        free = shutil.disk_usage(existing).free
    except OSError as error:
        return fail("data directory", f"{folder} cannot be made or written: {error.strerror}", fix)
    detail = f"{folder} ({free / (1 << 30):.0f} GiB free)"
    if free < _LEAST_FREE_BYTES:
        return warn("data directory", detail, f"free some space, or {fix}")
    return ok("data directory", detail)


async def audit_file(file: Path) -> Check:
    """The configured file that takes the audit trail while Redis is away."""
    try:
        _tried_file(file)
    except OSError as error:
        fix = "set runtime.memory_engine.audit.file: with Redis away, every operation would fail"
        return warn("audit file", f"{file} cannot be written: {error.strerror}", fix)
    return ok("audit file", str(file))


def _tried(folder: Path) -> Path:
    """The part of the path that exists, after a file could be made in it, which is gone again.

    Asking for permissions is not enough: there are places where root has all of them and yet
    nothing can be made.

    Raises:
        OSError: It could not.
    """
    existing = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if _is_there(path)
    )
    with tempfile.TemporaryDirectory(prefix=".orchestrata-memory-", dir=existing) as trial:
        (Path(trial) / "entry").write_bytes(b"x")
    return existing


def _tried_file(file: Path) -> None:
    """Like `_tried`; a file that exists is opened, and stays as it is."""
    _tried(file.parent)
    if file.exists():
        file.open("ab").close()


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
