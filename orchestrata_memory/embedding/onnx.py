"""The light backend: an ONNX export of the model on onnxruntime, without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.locate import DEFAULT_MODEL, onnx_files
from orchestrata_memory.embedding.windows import Batch, WindowedEncoder
from orchestrata_memory.errors import MemoryConfigurationError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_DEFAULT_WINDOW = 256


class OnnxModel:
    """An ONNX export with mean pooling; a query takes about half of what torch takes.

    The int8 export of the default model agrees with the reference to a cosine of about 0.9996,
    so vectors of both may be compared with each other and carry one name.

    Args:
        model: Name of the model.
        model_path: Directory with ``model.onnx`` and ``tokenizer.json``.
        threads: Threads of one forward pass.

    Traces: REQ-010-036
    """

    backend = "onnx"

    def __init__(
        self, model: str = DEFAULT_MODEL, *, model_path: Path | None = None, threads: int = 1
    ) -> None:
        self.name = model
        self._path = model_path
        self._threads = threads
        self._session: InferenceSession | None = None
        self._encoder: WindowedEncoder | None = None
        self._inputs: frozenset[str] = frozenset()
        self._dimension = 0

    @property
    def dimension(self) -> int:
        """Length of its vectors; 0 until it is loaded."""
        return self._dimension

    def load(self) -> None:
        """Load the weights; idempotent.

        Raises:
            MemoryConfigurationError: Not installed or not found, with what to install; or the
                model does not pool by the mean.
        """
        if self._session is not None:
            return
        files = available(self.name, self._path)
        if files is None:
            raise MemoryConfigurationError(
                f"embedding.backend: no ONNX export of {self.name}: install "
                "orchestrata-memory[onnx] for the default model, or put model.onnx and "
                "tokenizer.json into embedding.model_path"
            )
        weights, tokenizer = files
        _check_pooling(tokenizer.parent)
        session = _session_of(weights, self._threads)
        self._encoder = _encoder_of(tokenizer)
        self._inputs = frozenset(entry.name for entry in session.get_inputs())
        self._dimension = int(session.get_outputs()[0].shape[-1])
        self._session = session

    def encode(self, texts: Sequence[str], *, with_tokens: bool) -> list[Encoding]:
        """Encode texts, in order; vector and token states come from one forward pass."""
        self.load()
        assert self._encoder is not None  # noqa: S101 - load() has set it
        return self._encoder.encode(texts, self._forward, with_tokens=with_tokens)

    def _forward(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert self._session is not None  # noqa: S101 - load() has set it
        arrays = {
            "input_ids": batch.ids,
            "attention_mask": batch.mask,
            "token_type_ids": batch.type_ids,
        }
        feed = {name: array for name, array in arrays.items() if name in self._inputs}
        states: NDArray[np.float32] = self._session.run(None, feed)[0]
        weights = batch.mask[:, :, None].astype(np.float32)
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        return (means / np.where(norms > 0, norms, 1)).astype(np.float32), states


def available(model: str, model_path: Path | None) -> tuple[Path, Path] | None:
    """The model's ONNX and tokenizer files when the libraries are installed too, else None."""
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return None
    return onnx_files(model, model_path)


def _check_pooling(directory: Path) -> None:
    """Refuse a model that sentence-transformers pools in another way than by the mean."""
    file = directory / "1_Pooling" / "config.json"
    if not file.is_file():
        return
    stated = json.loads(file.read_text(encoding="utf-8"))
    modes = {name for name, on in stated.items() if name.startswith("pooling_mode_") and on is True}
    if isinstance(mode := stated.get("pooling_mode"), str):
        modes.add(f"pooling_mode_{mode}_tokens")
    if modes - {"pooling_mode_mean_tokens"}:
        raise MemoryConfigurationError(
            f"embedding: {directory} pools by {', '.join(sorted(modes))}, the onnx backend by the "
            "mean of the tokens only; set embedding.backend to sentence-transformers"
        )


def _session_of(weights: Path, threads: int) -> InferenceSession:
    import onnxruntime  # noqa: PLC0415 - optional

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's errors share no documented base
        raise MemoryConfigurationError(
            f"embedding: {weights} is not a model that onnxruntime can load "
            f"({type(error).__name__})"
        ) from error


def _encoder_of(tokenizer_file: Path) -> WindowedEncoder:
    from tokenizers import Tokenizer  # noqa: PLC0415 - optional

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    padding = tokenizer.padding
    return WindowedEncoder(
        tokenizer,
        max_length=_window_of(tokenizer_file.parent),
        pad_id=int(padding["pad_id"]) if padding else 0,
    )


def _window_of(directory: Path) -> int:
    """The model's window as sentence-transformers' own configuration file states it."""
    file = directory / "sentence_bert_config.json"
    if not file.is_file():
        return _DEFAULT_WINDOW
    settings = json.loads(file.read_text(encoding="utf-8"))
    return int(settings.get("max_seq_length") or _DEFAULT_WINDOW)
