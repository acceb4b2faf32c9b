"""All checks together."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from pathlib import Path

from orchestrata_memory.cli.doctor import machine, models, servers
from orchestrata_memory.cli.doctor.check import Check, Look, fail, said
from orchestrata_memory.config.settings import MemoryEngineSettings


def looks(settings: MemoryEngineSettings, file: Path | None = None) -> dict[str, Look]:
    """Every check by name, ready to be made; `file` is what the settings were read from."""
    embedding = settings.embedding
    needs_graph = settings.graph.uri is None
    audit = settings.audit.file
    audit_file = {} if audit is None else {"audit file": partial(machine.audit_file, audit)}
    config_file = {} if file is None else {"config file": partial(machine.config_file, file)}
    return {
        **config_file,
        "Python": machine.python,
        "machine": partial(machine.machine, needs_embedded_graph=needs_graph),
        "SWI-Prolog": machine.prolog,
        "rules": partial(machine.rules, settings.governance),
        "data directory": partial(machine.data_dir, settings.embedded.data_dir),
        **audit_file,
        "Redis": partial(servers.redis, settings.redis, settings.embedded),
        "graph": partial(servers.graph, settings.graph),
        "model": partial(models.model_files, embedding),
        "torch": partial(models.torch, embedding),
        "ONNX": partial(models.onnx, embedding),
        "token counting": models.token_vocabulary,
        "Anthropic": partial(models.anthropic, settings.summary),
    }


async def examine(settings: MemoryEngineSettings, file: Path | None = None) -> list[Check]:
    """Make every check; one that breaks is a failure of its own and hides no other.

    Args:
        settings: What is in force.
        file: What they were read from, if anything.
    """
    return [await _look(name, look()) for name, look in looks(settings, file).items()]


async def _look(name: str, check: Awaitable[Check]) -> Check:
    try:
        return await check
    except Exception as error:  # noqa: BLE001 - a doctor reports, whatever is broken
        return fail(name, f"the check itself failed: {said(error)}", "please report this")
