"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrata_memory.cli.command import console
from orchestrata_memory.ingest.progress import Advance


class Bars:
    """Shows each stage as a bar, with its rate and what is left; a line where nobody watches."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """See `orchestrata_memory.ingest.progress.Reporter.stage`."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description:32}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console(progress=True)) as progress:
            task = progress.add_task(name, total=total)
            yield lambda steps: progress.advance(task, steps)
