"""Commands that find and condense: search, find, related, summarize, inject, lineage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrata_memory.cli.answers import (
    Answer,
    counted,
    entries_table,
    entry_document,
    plain,
    shorten,
    show,
    styled,
    table,
)
from orchestrata_memory.cli.arguments import KeyArgument, LimitOption, ScopeOptions, TagsOption
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.hearing import hearing
from orchestrata_memory.cli.missing import degraded, degraded_note, nothing_found
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import engine_for
from orchestrata_memory.interfaces import Topic
from orchestrata_memory.models import (
    InjectionStrategy,
    MemoryEntry,
    MemorySummary,
    SummarizationStrategy,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrata_memory.engine.operations.reading import MemoryLineage

PANEL = "Finding"


def _found(entries: list[MemoryEntry], title: str, *more: RenderableType) -> Answer:
    documents = [entry_document(entry) for entry in entries]
    return Answer(
        document={"count": len(entries), "results": documents},
        view=show(entries_table(title, entries) if entries else "nothing found", *more),
        exit_code=ExitCode.OK if entries else ExitCode.NOTHING,
    )


async def search(
    options: Options,
    *,
    query: Annotated[str, typer.Argument(help="What to look for, in words.")],
    limit: LimitOption = 10,
    min_similarity: Annotated[
        float,
        typer.Option(help="0 to 1; for entries that hold no word of the query."),
    ] = 0.7,
    explain: Annotated[bool, typer.Option("--explain", help="Show how scores came about.")] = False,
    filters: ScopeOptions,
) -> Answer:
    """Find memories by words and meaning, best first.

    With a tier away the others answer; `degraded` (with --json) names what is missing.
    """
    scope = filters.scope()
    async with engine_for(options) as engine, hearing(engine, Topic.SEARCH_COMPLETED) as heard:
        entries = await engine.search(
            query, scope=scope, limit=limit, min_similarity=min_similarity, explain=explain
        )
    missing = degraded(heard)
    explained = [_explanation(entry) for entry in entries if entry.explanation is not None]
    found = _found(entries, "Found", *explained, *degraded_note(missing))
    return replace(
        found,
        document={**found.document, "degraded": missing},
        exit_code=ExitCode.OK if entries else nothing_found(missing),
    )


def _explanation(entry: MemoryEntry) -> RenderableType:
    explanation = entry.explanation
    assert explanation is not None  # noqa: S101 - the caller looked
    rows = [
        (group + name.replace("_", " "), weight, value, weight * value)
        for group, parts in (("", explanation.parts), ("match: ", explanation.match))
        for name, (weight, value) in parts.items()
    ]
    terms = ", ".join(explanation.terms) or "none"
    title = f"{entry.key}: {explanation.score:.3f} in {explanation.tier}; terms: {terms}"
    return table(title, ("evidence", "weight", "value", "brings"), rows)


async def find(
    options: Options,
    *,
    tags: TagsOption = None,
    match_any: Annotated[bool, typer.Option("--any", help="Any of the tags, not all.")] = False,
    limit: LimitOption = 10,
    filters: ScopeOptions,
) -> Answer:
    """List memories by tags, session, task, project, owner or dates, newest first."""
    scope = filters.scope()
    async with engine_for(options) as engine:
        entries = await engine.find(
            tags=tags, match="any" if match_any else "all", scope=scope, limit=limit
        )
    return _found(entries, "Found")


async def related(
    options: Options,
    *,
    key: KeyArgument,
    depth: Annotated[int, typer.Option("--depth", help="At most so many steps.")] = 1,
    limit: LimitOption = 10,
) -> Answer:
    """Show memories that the graph connects with one, nearest first."""
    async with engine_for(options) as engine:
        found = await engine.related(key, depth=depth, limit=limit)
    documents = [
        {"distance": item.distance, "via": item.via, "entry": entry_document(item.entry)}
        for item in found
    ]
    rows = [
        (item.distance, ", ".join(item.via), item.entry.key, shorten(item.entry.content))
        for item in found
    ]
    columns = ("steps", "via", "key", "content")
    return Answer(
        document={"key": key, "count": len(documents), "results": documents},
        view=show(table("Related", columns, rows) if rows else "nothing is related"),
        exit_code=ExitCode.OK if rows else ExitCode.NOTHING,
    )


async def summarize(
    options: Options,
    *,
    context_id: Annotated[
        str | None, typer.Argument(help="A session or task; the caller's session if omitted.")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Budget, at least 16.")] = 2048,
    strategy: Annotated[
        SummarizationStrategy, typer.Option("--strategy", help="What to draw on first.")
    ] = SummarizationStrategy.RELEVANCE,
    focus: Annotated[
        str | None, typer.Option("--focus", help="What you are about to do: sets the relevance.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Store the summary as a memory.")] = False,
) -> Answer:
    """Condense a session or task into a token budget."""
    context = context_id or options.session_id
    async with engine_for(options, focus=focus) as engine:
        summary = await engine.summarize(context, max_tokens=max_tokens, strategy=strategy)
        stored = None
        if save and summary.source_count:
            stored = await engine.store_summary(context, max_tokens=max_tokens, strategy=strategy)
    document = _summary_document(summary, context)
    if stored is not None:
        document["key"] = stored.key
    return Answer(
        document=document,
        view=show(*_summary_view(summary), *([f"stored as {stored.key}"] if stored else [])),
        exit_code=ExitCode.OK if summary.source_count else ExitCode.NOTHING,
    )


def _summary_document(summary: MemorySummary, context: str) -> dict[str, object]:
    document = plain(summary)
    assert isinstance(document, dict)  # noqa: S101 - a dataclass becomes an object
    return {"context_id": context, **document}


def _summary_view(summary: MemorySummary) -> list[RenderableType]:
    if not summary.source_count:
        return ["nothing to summarize"]
    figures = (
        f"{counted(summary.token_count, 'token')} by {summary.counter}, {summary.method}, from "
        f"{counted(summary.source_count, 'memory', 'memories')}, {summary.omitted:,} left out"
    )
    return [summary.content, styled(figures, "dim")]


async def inject(
    options: Options,
    *,
    task_text: Annotated[str, typer.Argument(help="What the Volk is about to do.")],
    budget: Annotated[
        int | None, typer.Option("--budget", help="Tokens; the configured budget if omitted.")
    ] = None,
    strategy: Annotated[
        InjectionStrategy | None, typer.Option("--strategy", help="As configured if omitted.")
    ] = None,
) -> Answer:
    """Show what an injection puts into a CXP packet for a task."""
    from orchestrata_memory.interfaces import CXPPacket

    packet = CXPPacket(source="CLI", target=options.caller, payload=task_text)
    async with engine_for(options) as engine, hearing(engine, Topic.SEARCH_COMPLETED) as heard:
        result = await engine.inject(packet, task_text, budget_tokens=budget, strategy=strategy)
    missing = degraded(heard)
    context = packet.metadata.get("memory_context", {})
    used = f"{result.tokens_used} of {result.token_budget} tokens, {result.remaining} left"
    return Answer(
        document={"memory_context": context, "remaining": result.remaining, "degraded": missing},
        view=show(*_summary_view(result.summary), styled(used, "dim"), *degraded_note(missing)),
        exit_code=ExitCode.OK if result.summary.source_count else nothing_found(missing),
    )


async def lineage(options: Options, key: KeyArgument) -> Answer:
    """Show what a stored summary was made from, and what that was made from."""
    async with engine_for(options) as engine:
        found = await engine.lineage(key)
    return Answer(document=_lineage_document(found), view=show(_lineage_tree(found)))


def _lineage_document(item: MemoryLineage) -> dict[str, object]:
    return {
        "entry": entry_document(item.entry),
        "sources": [_lineage_document(source) for source in item.sources],
    }


def _lineage_tree(item: MemoryLineage) -> RenderableType:
    from rich.tree import Tree

    tree = Tree(styled(f"{item.entry.key}: {shorten(item.entry.content, 80)}"))
    for source in item.sources:
        tree.add(_lineage_tree(source))
    return tree


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "search", panel=PANEL)(search)
    command(app, "find", panel=PANEL)(find)
    command(app, "related", panel=PANEL)(related)
    command(app, "summarize", panel=PANEL)(summarize)
    command(app, "inject", panel=PANEL)(inject)
    command(app, "lineage", panel=PANEL)(lineage)
