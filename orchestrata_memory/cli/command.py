"""How a command is declared: common options, one answer, errors as one clear line.

A command is a function of an `Options` value and its own arguments that returns an `Answer` (or a
coroutine of one). `command` gives it the common options, which may stand before or after the
command's name, prints the answer, and turns errors into exit codes.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

from orchestrata_memory.cli.answers import Answer, dumps
from orchestrata_memory.cli.option_groups import collected, expanded
from orchestrata_memory.cli.options import Options
from orchestrata_memory.tokens.registry import ANTHROPIC_PROVIDERS, OPENAI_PROVIDERS

if TYPE_CHECKING:
    from rich.console import Console

Body = TypeVar("Body", bound=Callable[..., Answer | Awaitable[Answer]])

_PROVIDER = (
    f"Model provider: picks the token counter. {', '.join(OPENAI_PROVIDERS)}: tiktoken; "
    f"{', '.join(ANTHROPIC_PROVIDERS)}: an estimate that is not too low; any other, or none: words."
)
_MODEL = (
    "The provider's model: picks the vocabulary for OpenAI; with a key of Anthropic, a summary "
    "is held against that model's own count."
)
_PANEL = "Who and where (also before the command's name)"


def common_option(help_text: str, *flags: str, env: str | None = None) -> object:
    """One common option; `env` names its environment variable, read before the command's name."""
    return typer.Option(*flags, help=help_text, rich_help_panel=_PANEL, envvar=env)


def _common(*, with_env: bool) -> dict[str, tuple[object, object]]:
    def env(name: str) -> str | None:
        return f"ORCHESTRATA_MEMORY_{name}" if with_env else None

    def path(help_text: str, flag: str) -> tuple[object, object]:
        return Annotated[Path | None, common_option(help_text, flag)], None

    def text(help_text: str, flag: str, variable: str) -> tuple[object, object]:
        return Annotated[str | None, common_option(help_text, flag, env=env(variable))], None

    return {
        "config": path(
            "Configuration file (YAML); else the one ORCHESTRATA_MEMORY_CONFIG names.", "--config"
        ),
        "data_dir": path(
            "Data of the embedded servers; else ORCHESTRATA_MEMORY_DATA_DIR, else the user's.",
            "--data-dir",
        ),
        "volk": text("The calling Volk.", "--as", "VOLK"),
        "session": text("The caller's session.", "--session", "SESSION"),
        "task": text("The caller's task.", "--task", "TASK"),
        "project": text("The caller's project.", "--project", "PROJECT"),
        "provider": text(_PROVIDER, "--provider", "PROVIDER"),
        "model": text(_MODEL, "--model", "MODEL"),
        "json": (
            Annotated[bool, common_option("Print one JSON document.", "--json", env=None)],
            False,
        ),
    }


def signature_with_common(
    own: list[inspect.Parameter], *, with_env: bool
) -> tuple[inspect.Signature, dict[str, object]]:
    """A signature for typer: the context, `own` parameters, the common options."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("ctx", keyword, annotation=typer.Context)]
    parameters += [parameter.replace(kind=keyword) for parameter in own]
    parameters += [
        inspect.Parameter(name, keyword, annotation=annotation, default=default)
        for name, (annotation, default) in _common(with_env=with_env).items()
    ]
    annotations = {parameter.name: parameter.annotation for parameter in parameters}
    return inspect.Signature(parameters), annotations


def command(app: typer.Typer, name: str, *, panel: str | None = None) -> Callable[[Body], Body]:
    """Register a function as the command `name` of `app`."""

    def register(body: Body) -> Body:
        parameters = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        own, groups = expanded(parameters)
        common = {item.name for item in fields(Options)}

        def run(*, ctx: typer.Context, **arguments: object) -> int:
            given = {key: arguments.pop(key) for key in common}
            options = cast("Options", ctx.obj or Options()).overridden(given)
            own_arguments = collected(arguments, groups)
            return respond(options, lambda: body(options, **own_arguments))

        signature, annotations = signature_with_common(own, with_env=False)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = annotations
        run.__doc__ = _unwrapped(body.__doc__ or "")
        app.command(name, rich_help_panel=panel)(run)
        return body

    return register


def _unwrapped(text: str) -> str:
    """Paragraphs in a line each: help is wrapped to the terminal's width, not the source's."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def respond(options: Options, body: Callable[[], Answer | Awaitable[Answer]]) -> int:
    """Run a command's body and print its answer.

    With ``--json`` exactly one document goes to standard output: whatever else is printed on the
    way, by any library, goes to standard error.
    """
    answer_place = sys.stdout
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        outcome = body()
        answer = asyncio.run(_wait(outcome)) if inspect.isawaitable(outcome) else outcome
    assert isinstance(answer, Answer)  # noqa: S101 - both branches give one
    if options.json:
        answer_place.write(dumps(answer.document) + "\n")
    else:
        answer.view(console())
    return int(answer.exit_code)


def console(*, progress: bool = False) -> Console:
    """Where people read: standard output, or standard error for what is on the way."""
    from rich.console import Console

    # What memories say is shown as it is: ":smile:" is not a face.
    return Console(file=sys.stderr if progress else sys.stdout, highlight=False, emoji=False)


async def _wait(outcome: Awaitable[Answer]) -> Answer:
    return await outcome
