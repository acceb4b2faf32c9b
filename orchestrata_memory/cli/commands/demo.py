"""The command that shows the product."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrata_memory.cli.answers import Answer, show, styled, visible
from orchestrata_memory.cli.command import command, console
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import settings_of

if TYPE_CHECKING:
    from rich.console import Console

    from orchestrata_memory.cli.demo.steps import Step, Teller

PANEL = "Start here"


async def demo(
    options: Options,
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the data, in --data-dir or a folder it names.")
    ] = False,
    backend: Annotated[
        str, typer.Option("--backend", help="embedded, configured or a URI like neo4j://host.")
    ] = "embedded",
) -> Answer:
    """Tell a small story on real servers: store, search, deny, summarize, close, come back.

    Uses a data directory of its own, so your data is not touched.
    """
    from orchestrata_memory.bench.environment import environment
    from orchestrata_memory.cli.demo import story
    from orchestrata_memory.cli.demo.steps import Demo

    settings = settings_of(options)
    governance = settings.governance.model_copy(update={"volks": story.VOLKS})
    settings = settings.model_copy(update={"governance": governance})
    data_dir = _kept_dir(options) if keep else None
    started = time.perf_counter()
    async with environment(backend, settings, data_dir=data_dir) as place:
        seconds = time.perf_counter() - started
        found = await Demo(place, seconds, _teller(options)).play()
    document = {**found, "data_dir": str(data_dir) if data_dir else None}
    ending = f"\nThe whole story took {found['seconds']:.1f} s."
    if data_dir:
        ending += f" Its data is in {data_dir}."
    return Answer(document=document, view=show(ending))


def _kept_dir(options: Options) -> Path:
    if options.data_dir is not None:
        return options.data_dir
    return Path.cwd() / f"orchestrata-memory-demo-{time.strftime('%Y%m%d-%H%M%S')}"


def _teller(options: Options) -> Teller:
    if options.json:
        return lambda step: None  # noqa: ARG005 - machines wait for the end
    place = console()
    return lambda step: _print(place, step)


def _print(place: Console, step: Step) -> None:
    from rich.padding import Padding
    from rich.text import Text

    told = f"{step.tier}, {step.seconds * 1000:,.0f} ms"
    place.print()
    place.print(Text.assemble((visible(step.title), "bold"), "  ", (told, "dim")))
    for line in step.lines:
        place.print(Padding(styled(line), (0, 0, 0, 2)))


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "demo", panel=PANEL)(demo)
