"""From settings to an embedding service."""

from __future__ import annotations

from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.embedding import onnx
from orchestrata_memory.embedding import sentence_transformers as reference
from orchestrata_memory.embedding.base import EmbeddingModel
from orchestrata_memory.embedding.cache import VectorCache
from orchestrata_memory.embedding.hashing import HashingModel
from orchestrata_memory.embedding.service import EmbeddingService
from orchestrata_memory.errors import MemoryConfigurationError


def build_embedder(
    settings: EmbeddingSettings, *, cache: VectorCache | None = None
) -> EmbeddingService:
    """The service that the settings describe; loads nothing yet.

    Raises:
        MemoryConfigurationError: A backend that is asked for is not installed.

    Traces: REQ-010-038
    """
    return EmbeddingService(
        settings,
        document_model=document_model(settings),
        query_model=query_model(settings),
        cache=cache,
    )


def document_model(settings: EmbeddingSettings) -> EmbeddingModel:
    """The model for what is stored."""
    if settings.backend == "hashing":
        return HashingModel(settings.dimension)
    if settings.backend == "onnx":
        _require_onnx(settings, "embedding.backend")
        return _onnx_model(settings)
    reference.check_installed()
    return reference.SentenceTransformersModel(
        settings.model,
        model_path=settings.model_path,
        device=settings.device,
        threads=settings.threads,
    )


def query_model(settings: EmbeddingSettings) -> EmbeddingModel | None:
    """A model of its own for queries, or None where the document model serves them."""
    if settings.query_backend == "same" or settings.backend != "sentence-transformers":
        return None
    if settings.query_backend == "onnx":
        _require_onnx(settings, "embedding.query_backend")
    elif settings.device != "cpu" or not onnx.available(settings.model, settings.model_path):
        return None
    return _onnx_model(settings)


def _onnx_model(settings: EmbeddingSettings) -> onnx.OnnxModel:
    return onnx.OnnxModel(settings.model, model_path=settings.model_path, threads=settings.threads)


def _require_onnx(settings: EmbeddingSettings, field: str) -> None:
    if onnx.available(settings.model, settings.model_path) is None:
        raise MemoryConfigurationError(
            f"{field}: onnx needs onnxruntime, tokenizers and an ONNX export of {settings.model}: "
            "install orchestrata-memory[onnx] for the default model, or put model.onnx and "
            "tokenizer.json into embedding.model_path"
        )
