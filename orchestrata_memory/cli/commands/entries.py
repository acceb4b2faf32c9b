"""Commands on one memory: store, get, update, delete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrata_memory.cli.answers import Answer, entry_document, entry_table, show
from orchestrata_memory.cli.arguments import (
    ClassificationOption,
    KeyArgument,
    MetadataOption,
    TagsOption,
    content_of,
    metadata_of,
)
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.missing import graph_is_away, waiting_note
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import engine_for
from orchestrata_memory.errors import MemoryNotFoundError
from orchestrata_memory.models import MemoryClassification, MemoryEntry

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

PANEL = "Memories"


def _stored(entry: MemoryEntry, verb: str, *, waits: bool) -> Answer:
    return Answer(
        document={"entry": entry_document(entry), "waits_for_graph": waits},
        view=show(f"{verb} {entry.key}", entry_table(entry), *waiting_note(waits=waits)),
    )


async def store(
    options: Options,
    *,
    content: Annotated[str, typer.Argument(help="The text; - reads standard input.")],
    key: Annotated[
        str | None, typer.Option("--key", help="A key of your own; else a UUID.")
    ] = None,
    tags: TagsOption = None,
    metadata: MetadataOption = None,
    classification: ClassificationOption = MemoryClassification.PRIVATE,
) -> Answer:
    """Store a memory in the caller's session."""
    text, described = content_of(content), metadata_of(metadata)
    async with engine_for(options) as engine:
        entry = await engine.store(
            text, key=key, tags=tags, metadata=described, classification=classification
        )
        waits = await graph_is_away(engine)
    return _stored(entry, "stored", waits=waits)


async def get(
    options: Options,
    *,
    key: KeyArgument,
    metadata: Annotated[bool, typer.Option(help="Show tags and metadata too.")] = True,
    embedding: Annotated[bool, typer.Option("--embedding", help="With the vector.")] = False,
) -> Answer:
    """Show the memory with a key."""
    async with engine_for(options) as engine:
        entry = await engine.retrieve(key, include_metadata=metadata)
        if entry is None:
            raise MemoryNotFoundError(key)
        if embedding and entry.embedding is None:
            entry = replace(entry, embedding=await _vector(engine, key))
    return Answer(
        document={"entry": entry_document(entry, embedding=embedding)},
        view=show(entry_table(entry)),
    )


async def _vector(engine: MemoryEngine, key: str) -> tuple[float, ...] | None:
    """The vector of a memory that the caller was allowed to read, from whichever tier has it."""
    for tier in (engine.parts.hot, engine.parts.cold):
        found = (await tier.vectors([key])).get(key)
        if found is not None:
            return tuple(found.vector.tolist())
    return None


async def update(
    options: Options,
    *,
    key: KeyArgument,
    content: Annotated[
        str | None, typer.Option("--content", help="The new text; - reads standard input.")
    ] = None,
    tags: TagsOption = None,
    clear_tags: Annotated[bool, typer.Option("--clear-tags", help="Remove all tags.")] = False,
    metadata: MetadataOption = None,
    classification: Annotated[
        MemoryClassification | None,
        typer.Option("--classification", "-c", help="Who else may read it."),
    ] = None,
) -> Answer:
    """Change what is given of an own memory."""
    if clear_tags and tags:
        raise typer.BadParameter("--clear-tags and --tag exclude each other")
    if not (clear_tags or tags) and content is metadata is classification is None:
        raise typer.BadParameter("nothing to change: give --content, --tag, --metadata or another")
    text, described = None if content is None else content_of(content), metadata_of(metadata)
    async with engine_for(options) as engine:
        entry = await engine.update(
            key,
            content=text,
            tags=[] if clear_tags else tags or None,
            metadata=described,
            classification=classification,
        )
        waits = await graph_is_away(engine)
    return _stored(entry, "updated", waits=waits)


async def delete(options: Options, key: KeyArgument) -> Answer:
    """Delete an own memory for good."""
    async with engine_for(options) as engine:
        deleted = await engine.delete(key)
        waits = deleted and await graph_is_away(engine)
    told = f"deleted {key}" if deleted else f"no memory has the key {key!r}"
    return Answer(
        document={"key": key, "deleted": deleted, "waits_for_graph": waits},
        view=show(told, *waiting_note(waits=waits)),
        exit_code=ExitCode.OK if deleted else ExitCode.NOTHING,
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(app, "store", panel=PANEL)(store)
    command(app, "get", panel=PANEL)(get)
    command(app, "update", panel=PANEL)(update)
    command(app, "delete", panel=PANEL)(delete)
