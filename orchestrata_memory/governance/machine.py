"""The process's one SWI-Prolog, and the one thread it is used from.

SWI-Prolog is a single machine for the whole process, and an engine of it belongs to the thread it
was made on. So there is one thread for it, started when the first governance opens and kept until
the interpreter ends; every governance has a module of its own in it.
"""

from __future__ import annotations

import asyncio
import atexit
import locale
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import as_file, files
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, TypeVar

from orchestrata_memory.errors import MemoryGovernanceError
from orchestrata_memory.governance.terms import Compound, Prolog, PrologFailure

Result = TypeVar("Result")

DRIVER: Final = "orchestrata_memory_driver"
MISSING: Final = (
    "SWI-Prolog cannot be used, and without it nothing is permitted: "
    "install it with `apt-get install swi-prolog-nox` (version 8.2 or newer)"
)


class PrologMachine:
    """Runs work on the Prolog thread.

    Use `shared()`; a second one in the process would share Prolog's state anyway.
    """

    _shared: PrologMachine | None = None
    _lock: Final = Lock()

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._prolog: Prolog | None = None
        self._numbers = count(1)
        # A daemon: a rule that waits for ever must not keep the process from ending.
        Thread(target=self._work, name="orchestrata-memory-prolog", daemon=True).start()

    @classmethod
    def shared(cls) -> PrologMachine:
        """The process's machine."""
        with cls._lock:
            if cls._shared is None:
                cls._shared = cls()
            return cls._shared

    def new_module(self) -> str:
        """A name that no other module has."""
        return f"orchestrata_memory_rules_{next(self._numbers)}"

    async def run(self, work: Callable[[Prolog], Result], *, timeout: float) -> Result:  # noqa: ASYNC109
        """Do `work` on the Prolog thread.

        Raises:
            MemoryGovernanceError: SWI-Prolog is missing, or the work failed.
            TimeoutError: It took longer than `timeout` seconds, waiting for the thread included.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._jobs.put(_Job(work, loop, future))
        async with asyncio.timeout(timeout):
            return await future

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job.future.done():  # its caller has given up
                continue
            try:
                answer, error = self._do(job.work), None
            except Exception as caught:  # noqa: BLE001 - it is the caller's
                answer, error = None, caught
            with suppress(RuntimeError):  # the caller's loop has ended
                job.loop.call_soon_threadsafe(_deliver, job.future, answer, error)
            del job, answer, error  # nothing of a question is kept while waiting for the next

    def _do(self, work: Callable[[Prolog], Any]) -> object:
        if self._prolog is None:
            self._prolog = _begin()
        try:
            return work(self._prolog)
        except PrologFailure as failure:
            raise MemoryGovernanceError(f"Prolog gave no answer: {failure}") from failure


class _Job(NamedTuple):
    work: Callable[[Prolog], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


def _deliver(future: asyncio.Future[Any], answer: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)


def _begin() -> Prolog:
    try:
        prolog = Prolog(_library())
    except AttributeError as error:  # a function of its interface is not there
        raise MemoryGovernanceError(f"{MISSING}: this one is too old") from error
    rules = files("orchestrata_memory.governance").joinpath("rules", "driver.pl")
    try:
        prolog.attach()
        with as_file(rules) as path:
            prolog.run("system", "load_files", str(path), [Compound("silent", ("true",))])
        prolog.run(DRIVER, "silence")
    except PrologFailure as failure:
        raise MemoryGovernanceError(f"the Prolog driver does not load: {failure}") from failure
    return prolog


def _library() -> str:
    """Import pyswip, which starts SWI-Prolog, and leave no other trace of that in the process.

    pyswip hooks `sys.exit` and cleans Prolog up at exit from a thread that cannot do so (Prolog
    says so on stderr); SWI-Prolog changes the locale, which is the whole process's.
    """
    if "pyswip" in sys.modules:  # another component began it: it is theirs to end
        from pyswip import core  # noqa: PLC0415 - see above

        return str(core._path)  # noqa: SLF001
    kept_exit, kept_locale = sys.exit, locale.setlocale(locale.LC_ALL)
    try:
        from pyswip import core  # noqa: PLC0415 - its import fails where SWI-Prolog is missing
    except Exception as error:
        raise MemoryGovernanceError(f"{MISSING} ({type(error).__name__})") from error
    finally:
        sys.exit = kept_exit
        locale.setlocale(locale.LC_ALL, kept_locale)
    atexit.unregister(core.cleanupProlog)
    return str(core._path)  # noqa: SLF001
