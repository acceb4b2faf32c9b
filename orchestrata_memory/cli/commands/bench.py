"""The benches: latency, locomo, intents, scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrata_memory.cli.answers import Answer, show, styled, table
from orchestrata_memory.cli.command import command
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.option_groups import OptionGroup
from orchestrata_memory.cli.options import Options
from orchestrata_memory.cli.runtime import settings_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrata_memory.bench.latency import LatencyReport
    from orchestrata_memory.bench.locomo import LocomoReport
    from orchestrata_memory.bench.scale import ScaleReport

PANEL = "Sessions and files"

FileArgument = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The data set.")]


class TierChoice(StrEnum):
    """Which tier is asked."""

    HOT = "hot"
    COLD = "cold"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions(OptionGroup):
    """Where a bench runs."""

    backend: Annotated[
        str,
        typer.Option(
            "--backend",
            help="embedded (own temporary servers), configured, or a graph's URI such as "
            "neo4j://127.0.0.1:7687 (login from NEO4J_USERNAME and NEO4J_PASSWORD).",
        ),
    ] = "embedded"
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the memories on servers that are not temporary."),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions(PlaceOptions):
    """How the questions of a data set are asked."""

    tier: Annotated[
        TierChoice, typer.Option("--tier", help="hot: sessions stay open; cold: all are closed.")
    ] = TierChoice.HOT
    every: Annotated[int, typer.Option("--every", min=1, help="Ask every n-th question only.")] = 1


async def latency(
    options: Options,
    *,
    place: PlaceOptions,
    samples: Annotated[
        int | None, typer.Option("--samples", min=10, help="Measurements a row; 1,000 if omitted.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small store, a few samples.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Fail when a P95 is over the requirement's limit.")
    ] = False,
) -> Answer:
    """Measure every operation through the public interface, against its limits."""
    from orchestrata_memory.bench.environment import environment
    from orchestrata_memory.bench.latency import QUICK, Sizes, run_latency
    from orchestrata_memory.cli.progress import Bars

    sizes = QUICK if quick else Sizes()
    sizes = replace(sizes, samples=samples) if samples else sizes
    async with environment(place.backend, settings_of(options)) as where:
        report = await run_latency(where, sizes, Bars(), keep=place.keep)
    missed = report.misses()
    return Answer(
        document=report.document(),
        view=show(*_latency_view(report)),
        exit_code=ExitCode.NOTHING if check and missed else ExitCode.OK,
    )


def _latency_view(report: LatencyReport) -> list[RenderableType]:
    from orchestrata_memory.bench.limits import ROWS, STORES_PER_SECOND

    rows = []
    for name, timing in report.rows.items():
        limit = ROWS.get(name)
        required = limit.required_ms if limit else None
        ours = limit.ours_ms if limit else None
        verdict = _verdict(timing.p95_ms, required, ours)
        rows.append(
            (
                name.replace("_", " "),
                timing.samples,
                timing.p50_ms,
                timing.p95_ms,
                timing.p99_ms,
                required,
                ours,
                verdict,
            )
        )
    columns = ("operation", "samples", "p50 ms", "p95 ms", "p99 ms", "required", "ours", "")
    models = ", ".join(f"{key} {value}" for key, value in report.models.items())
    return [
        table(report.backend, columns, rows),
        (
            f"sustained: {report.stores_per_s:,.0f} stores/s acknowledged over "
            f"{report.sustained_stores:,} (ours: {STORES_PER_SECOND:,.0f}); cold had all "
            f"{report.cold_lag_s:.1f} s later"
        ),
        styled(models, "dim"),
    ]


def _verdict(p95_ms: float, required: float | None, ours: float | None) -> str:
    if required is not None and p95_ms > required:
        return "over the limit"
    if ours is not None:
        return "ours" if p95_ms <= ours else "not ours yet"
    return ""


async def locomo(
    options: Options,
    *,
    file: FileArgument,
    asking: QuestionOptions,
) -> Answer:
    """Ask LoCoMo's questions: are the turns that answer them among the first ten?"""
    from orchestrata_memory.bench.environment import environment
    from orchestrata_memory.bench.locomo import run_locomo
    from orchestrata_memory.bench.locomo_data import read_conversations
    from orchestrata_memory.cli.progress import Bars

    settings = settings_of(options)
    conversations = read_conversations(file, limit_bytes=settings.limits.content_bytes)
    async with environment(asking.backend, settings, promote=False) as place:
        report = await run_locomo(
            place,
            conversations,
            Bars(),
            tier=asking.tier.value,
            every=asking.every,
            keep=asking.keep,
        )
    return Answer(document=report.document(), view=show(*_locomo_view(report)))


def _locomo_view(report: LocomoReport) -> list[RenderableType]:
    from orchestrata_memory.bench.locomo import Quality
    from orchestrata_memory.bench.searching import timing_of

    named = [(str(category), quality) for category, quality in report.by_category().items()]
    named.append(("all", Quality.of(report.replies)))
    rows = [(name, q.n, q.any_at_5, q.any_at_10, q.fraction_at_10) for name, q in named]
    timing = timing_of(report.replies)
    columns = ("category", "questions", "any@5", "any@10", "fraction@10")
    return [
        table(f"{report.backend}, {report.tier}", columns, rows),
        (
            f"search p50 {timing.p50_ms:.1f} ms, p95 {timing.p95_ms:.1f} ms, of which embedding "
            f"the question {report.embedding_p50_ms:.1f} ms; {report.memories:,} turns stored in "
            f"{report.ingest_s:.1f} s"
        ),
    ]


async def ablation(
    options: Options,
    *,
    file: FileArgument,
    asking: QuestionOptions,
    intents: Annotated[
        Path | None,
        typer.Option(
            "--intents",
            exists=True,
            dir_okay=False,
            help="CLINC150's file: asks its queries too.",
        ),
    ] = None,
) -> Answer:
    """Ask LoCoMo's questions with each ingredient of the ranking left out in turn."""
    from orchestrata_memory.bench.ablation import run_ablation
    from orchestrata_memory.bench.environment import environment
    from orchestrata_memory.bench.intents import read_intents
    from orchestrata_memory.bench.locomo_data import read_conversations
    from orchestrata_memory.cli.progress import Bars

    settings = settings_of(options)
    conversations = read_conversations(file, limit_bytes=settings.limits.content_bytes)
    unrelated = None if intents is None else read_intents(intents)
    async with environment(asking.backend, settings, promote=False) as place:
        report = await run_ablation(
            place,
            conversations,
            Bars(),
            intents=unrelated,
            tier=asking.tier.value,
            every=asking.every,
            keep=asking.keep,
        )
    rows = [
        (
            row.without,
            row.quality.any_at_5,
            row.quality.any_at_10,
            row.quality.fraction_at_10,
            row.precision_at_10,
            row.p50_ms,
            row.cpu_p50_ms,
        )
        for row in report.rows
    ]
    columns = ("without", "any@5", "any@10", "fraction@10", "CLINC p@10", "p50 ms", "CPU ms")
    title = f"{report.backend}, {report.tier}"
    return Answer(document=report.document(), view=show(table(title, columns, rows)))


async def intents(
    options: Options,
    *,
    file: FileArgument,
    asking: QuestionOptions,
) -> Answer:
    """Ask CLINC150's queries: precision@10, beside that of an exact cosine."""
    from orchestrata_memory.bench.environment import environment
    from orchestrata_memory.bench.intents import read_intents, run_intents
    from orchestrata_memory.bench.searching import timing_of
    from orchestrata_memory.cli.progress import Bars

    data = read_intents(file)
    async with environment(asking.backend, settings_of(options), promote=False) as place:
        report = await run_intents(
            place, data, Bars(), tier=asking.tier.value, every=asking.every, keep=asking.keep
        )
    timing = timing_of(report.replies)
    rows = [("search", report.precision_at_10), ("exact cosine", report.exact_precision_at_10)]
    return Answer(
        document=report.document(),
        view=show(
            table(f"{report.backend}, {report.tier}", ("", "precision@10"), rows),
            f"{len(report.replies):,} queries over {report.memories:,} texts: search p50 "
            f"{timing.p50_ms:.1f} ms, p95 {timing.p95_ms:.1f} ms, of which embedding "
            f"{report.embedding_p50_ms:.1f} ms; stored in {report.ingest_s:.1f} s",
        ),
    )


class ScaleTier(StrEnum):
    """Which tier grows."""

    HOT = "hot"
    COLD = "cold"
    BOTH = "both"


async def scale(
    options: Options,
    *,
    sizes: Annotated[
        str, typer.Option("--sizes", help="Rising numbers of memories.")
    ] = "1000,10000,100000",
    tier: Annotated[ScaleTier, typer.Option("--tier", help="Which tier grows.")] = ScaleTier.BOTH,
    queries: Annotated[int, typer.Option("--queries", min=10, help="Searches a size.")] = 200,
    place: PlaceOptions,
) -> Answer:
    """Grow a store of generated texts with known neighbours, and measure at each size."""
    steps = _sizes(sizes)
    from orchestrata_memory.bench.environment import environment
    from orchestrata_memory.bench.scale import run_scale
    from orchestrata_memory.cli.progress import Bars

    settings = settings_of(options)
    reports = []
    for name in ("hot", "cold"):
        if tier in {ScaleTier.BOTH, name}:
            async with environment(place.backend, settings, promote=False) as where:
                reports.append(
                    await run_scale(
                        where,
                        steps,
                        Bars(),
                        tier="hot" if name == "hot" else "cold",
                        queries=queries,
                        keep=place.keep,
                    )
                )
    documents = {report.tier: report.document() for report in reports}
    return Answer(
        document={**reports[0].document(), "tiers": documents},
        view=show(*(item for report in reports for item in _scale_view(report))),
    )


def _sizes(text: str) -> list[int]:
    from orchestrata_memory.bench.corpus import GROUP_SIZE, MAX_TEXTS

    try:
        sizes = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--sizes: {text!r} is no list of numbers") from None
    if sizes != sorted(set(sizes)) or not GROUP_SIZE <= sizes[0] <= sizes[-1] <= MAX_TEXTS:
        raise typer.BadParameter(f"--sizes: rising numbers from {GROUP_SIZE} to {MAX_TEXTS:,}")
    return sizes


def _scale_view(report: ScaleReport) -> list[RenderableType]:
    columns = (
        "memories",
        "stores/s",
        "lag s",
        "index s",
        "p50 ms",
        "p95 ms",
        "recall",
        "process",
        "Redis",
    )
    rows = [
        (
            step.n,
            round(step.stores_per_s),
            step.lag_s,
            step.index_s,
            step.timing.p50_ms,
            step.timing.p95_ms,
            " / ".join(
                f"{recall:.2f}"
                for recall in (
                    step.recall_at_10,
                    step.vector_recall_at_10,
                    step.scoped_vector_recall_at_10,
                )
            ),
            f"{step.process_mib:,.0f} MiB",
            f"{step.redis_mib:,.0f} MiB",
        )
        for step in report.steps
    ]
    return [
        table(f"{report.backend}, {report.tier}", columns, rows),
        styled(
            "recall@10 of a search for known neighbours / of the vector look-up against an exact "
            "scan, over all / within one session",
            "dim",
        ),
        _growth(report),
    ]


def _growth(report: ScaleReport) -> RenderableType:
    """Bars of the P95 at each size, each to the same scale."""
    from rich.table import Table

    widest = max(step.timing.p95_ms for step in report.steps)
    drawn = Table.grid(padding=(0, 1))
    for step in report.steps:
        bar = "█" * max(1, round(step.timing.p95_ms / widest * 40))
        drawn.add_row(f"{step.n:>9,}", bar, f"{step.timing.p95_ms:.1f} ms p95")
    return drawn


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(help="Measure speed and retrieval quality.", no_args_is_help=True)
    command(group, "latency")(latency)
    command(group, "locomo")(locomo)
    command(group, "ablation")(ablation)
    command(group, "intents")(intents)
    command(group, "scale")(scale)
    app.add_typer(group, name="bench", rich_help_panel=PANEL)
