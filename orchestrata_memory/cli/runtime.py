"""Settings and a running engine for one command."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from orchestrata_memory.cli.options import DEFAULT_ROLES, DEFAULT_VOLK, Options
from orchestrata_memory.models import MemoryContext, memory_context

if TYPE_CHECKING:
    from orchestrata_memory.config.settings import MemoryEngineSettings
    from orchestrata_memory.engine.engine import MemoryEngine

LINGER_SECONDS = 60.0


def settings_of(options: Options) -> MemoryEngineSettings:
    """The effective settings: file, environment, options, then what suits a command line.

    Where nobody is registered, the default Volk is; where no linger is configured, the embedded
    servers outlive a command by `LINGER_SECONDS`.

    Raises:
        MemoryConfigurationError: The file or a variable is wrong; names the field.
    """
    from orchestrata_memory.config.loader import load_settings

    settings = load_settings(options.config, environ=os.environ)
    embedded = settings.embedded
    if options.data_dir is not None:
        embedded = embedded.model_copy(update={"data_dir": options.data_dir})
    if "linger_seconds" not in embedded.model_fields_set:
        embedded = embedded.model_copy(update={"linger_seconds": LINGER_SECONDS})
    governance = settings.governance
    if not governance.volks:
        governance = governance.model_copy(update={"volks": {DEFAULT_VOLK: DEFAULT_ROLES}})
    return settings.model_copy(update={"embedded": embedded, "governance": governance})


def context_of(options: Options, *, focus: str | None = None) -> MemoryContext:
    """The caller as the options name it."""
    return MemoryContext(
        volk_id=options.caller,
        session_id=options.session_id,
        task_id=options.task,
        project_id=options.project,
        provider=options.provider,
        model=options.model,
        focus=focus,
    )


def with_light_model(settings: MemoryEngineSettings) -> MemoryEngineSettings:
    """The settings with ONNX for the little that one command embeds, where it can be had.

    It is loaded in a moment where the reference takes seconds. Only the default model's export is
    known to agree with it (cosine at least 0.999), so another model, and what is configured, stays.
    """
    from orchestrata_memory.embedding import onnx
    from orchestrata_memory.embedding.locate import is_default_model

    embedding = settings.embedding
    chosen = {"backend", "device", "model_path"} & embedding.model_fields_set
    if chosen or not is_default_model(embedding.model) or not onnx.available(embedding.model, None):
        return settings
    light = embedding.model_copy(update={"backend": "onnx"})
    return settings.model_copy(update={"embedding": light})


@asynccontextmanager
async def engine_for(
    options: Options, *, focus: str | None = None, bulk: bool = False
) -> AsyncIterator[MemoryEngine]:
    """A started engine with the options' caller set; stopped at the end.

    Args:
        options: Who calls, and where.
        focus: What the caller is about to do.
        bulk: Much will be embedded, so loading the reference model pays.
    """
    settings = settings_of(options)
    if not bulk:
        settings = with_light_model(settings)
    from orchestrata_memory import open_engine

    async with open_engine(settings) as engine:
        with memory_context(context_of(options, focus=focus)):
            yield engine
