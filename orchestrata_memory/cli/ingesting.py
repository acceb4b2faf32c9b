"""Storing what files hold: in order within a session, several sessions at once, never twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrata_memory.cli.closing import close_session
from orchestrata_memory.cli.missing import graph_is_away
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import context_of
from orchestrata_memory.errors import (
    MemoryAccessDeniedError,
    MemoryKeyExistsError,
    MemoryValidationError,
)
from orchestrata_memory.ingest import Format, IngestItem, read_items
from orchestrata_memory.ingest.progress import Reporter
from orchestrata_memory.ingest.writers import write_streams
from orchestrata_memory.models import MemoryClassification, memory_context

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

_SETTLE_SECONDS = 120.0
_SECONDS_AN_ENTRY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file and what is in it."""

    path: Path
    items: tuple[IngestItem, ...]


@dataclass(slots=True, kw_only=True)
class FileReport:
    """What became of one file.

    Attributes:
        stored: New memories.
        already_there: Memories that an earlier run had stored.
        refused: Key and problem of those that could not be stored.
    """

    path: Path
    stored: int = 0
    already_there: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class IngestReport:
    """What became of all of them.

    Attributes:
        seconds: Until every memory was acknowledged.
        settle_seconds: Until the graph had them too, or no longer waited for.
        settled: Whether the graph has all of them.
        waits_for_graph: It has not, and does not answer.
        migrated: Memories moved to the graph by closing their sessions.
    """

    files: list[FileReport]
    seconds: float = 0.0
    settle_seconds: float = 0.0
    settled: bool = True
    waits_for_graph: bool = False
    closed_sessions: int = 0
    migrated: int = 0

    @property
    def entries(self) -> int:
        """Memories looked at."""
        return sum(f.stored + f.already_there + len(f.refused) for f in self.files)

    @property
    def refused(self) -> int:
        """Memories that could not be stored."""
        return sum(len(f.refused) for f in self.files)

    @property
    def sessions(self) -> set[str]:
        """Sessions that hold what was ingested."""
        return set().union(*(f.sessions for f in self.files))


def read_sources(
    paths: Sequence[Path], *, limit_bytes: int, form: Format | None = None
) -> list[Source]:
    """Read every file before anything is stored, so that a faulty one changes nothing.

    Args:
        paths: The files.
        limit_bytes: The content limit.
        form: Format of all of them; None finds out.

    Raises:
        MemoryValidationError: Names the file and line of what is wrong.
    """
    return [
        Source(path=path, items=tuple(read_items(path, limit_bytes=limit_bytes, form=form)))
        for path in paths
    ]


class Ingest:
    """Stores sources for the caller that the options name.

    Args:
        engine: A running engine.
        options: The caller; a session, project or task given there counts where the file names
            none, and without either the session is named after the file.
        reporter: Shows progress.
        stable_keys: Keys from the files, so that a second run stores nothing twice; else UUIDs,
            which are quicker.
        classification: Of every memory.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        options: Options,
        reporter: Reporter,
        *,
        stable_keys: bool = True,
        classification: MemoryClassification = MemoryClassification.PRIVATE,
    ) -> None:
        self._engine = engine
        self._options = options
        self._reporter = reporter
        self._stable_keys = stable_keys
        self._classification = classification
        self._began = datetime.now(UTC)

    async def run(self, sources: Sequence[Source], *, close_sessions: bool) -> IngestReport:
        """Store every item, wait until the graph has them, close the sessions if asked."""
        report = IngestReport(files=[FileReport(path=source.path) for source in sources])
        streams = self._streams(sources, report.files)
        count = sum(map(len, streams))
        started = time.perf_counter()
        with self._reporter.stage("storing", count) as advance:
            await write_streams(streams, self._store, done=advance)
        report.seconds = time.perf_counter() - started
        with self._reporter.stage("writing behind", count) as advance:
            patience = _SETTLE_SECONDS + count * _SECONDS_AN_ENTRY
            report.settled = await self._engine.settle(patience)
            if report.settled:
                advance(count)
        report.settle_seconds = time.perf_counter() - started - report.seconds
        report.waits_for_graph = not report.settled and await graph_is_away(self._engine)
        if close_sessions:
            await self._close(report)
        return report

    def _streams(
        self, sources: Sequence[Source], files: Sequence[FileReport]
    ) -> list[list[tuple[FileReport, str, IngestItem]]]:
        """Items by session, in the order of their files."""
        streams: dict[str, list[tuple[FileReport, str, IngestItem]]] = {}
        for source, file in zip(sources, files, strict=True):
            for item in source.items:
                session = item.session_id or self._options.session or f"file:{source.path.name}"
                file.sessions.add(session)
                streams.setdefault(session, []).append((file, session, item))
        return list(streams.values())

    async def _store(self, place: tuple[FileReport, str, IngestItem]) -> None:
        file, session, item = place
        named = {"session": session, "project": item.project_id, "task": item.task_id}
        with memory_context(context_of(self._options.overridden(named))):
            try:
                entry = await self._engine.store(
                    item.content,
                    key=item.key if self._stable_keys else None,
                    tags=list(item.tags),
                    metadata=_metadata(item),
                    classification=self._classification,
                )
            except MemoryValidationError as error:
                file.refused.append((item.key, str(error)))
            except MemoryKeyExistsError as error:
                await self._judge_taken(file, item, error)
            else:
                known = self._stable_keys and entry.created_at < self._began
                file.already_there += known
                file.stored += not known

    async def _judge_taken(
        self, file: FileReport, item: IngestItem, error: MemoryKeyExistsError
    ) -> None:
        """A key that is taken by the same text of the same owner is there already."""
        try:
            found = await self._engine.retrieve(item.key)
        except MemoryAccessDeniedError:  # somebody else's
            found = None
        caller = self._options.caller
        if found and (found.content, found.volk_id) == (item.content, caller):
            file.already_there += 1
        else:
            file.refused.append((item.key, str(error)))

    async def _close(self, report: IngestReport) -> None:
        sessions = sorted(report.sessions)
        with self._reporter.stage("closing sessions", len(sessions)) as advance:
            for session in sessions:
                report.migrated += (await close_session(self._engine, session)).migrated
                report.closed_sessions += 1
                advance(1)


def _metadata(item: IngestItem) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if item.speaker is not None:
        metadata["speaker"] = item.speaker
    if item.occurred_at is not None:
        metadata["occurred_at"] = item.occurred_at.isoformat()
    return metadata
