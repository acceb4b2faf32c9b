"""The reference backend: sentence-transformers on torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.locate import DEFAULT_MODEL, hub_name, local_model_dir
from orchestrata_memory.embedding.windows import Batch, WindowedEncoder
from orchestrata_memory.errors import MemoryConfigurationError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_logger = logging.getLogger(__name__)
_FALLBACK_WINDOW = 512


class SentenceTransformersModel:
    """A sentence-transformers model; torch is imported when it is loaded, not before.

    Files come from the configured path, else the installed package of the default model, else
    the hub (which a machine without the network cannot reach).

    Args:
        model: Name of the model.
        model_path: Directory with its files.
        device: ``cpu`` or ``cuda``.
        threads: Threads of one forward pass on the CPU. torch keeps this number for the whole
            process; it is set when the model is loaded.

    Traces: REQ-010-036, REQ-010-038
    """

    backend = "sentence-transformers"

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        model_path: Path | None = None,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        self.name = model
        self._path = model_path
        self._device = device
        self._threads = threads
        self._model: SentenceTransformer | None = None
        self._encoder: WindowedEncoder | None = None
        self._dimension = 0
        self._input_names: frozenset[str] = frozenset()

    @property
    def dimension(self) -> int:
        """Length of its vectors; 0 until it is loaded."""
        return self._dimension

    def load(self) -> None:
        """Load the weights; idempotent.

        Raises:
            MemoryConfigurationError: Not installed or not found, with what to install.
        """
        if self._model is not None:
            return
        model = self._load_model()
        self._encoder = _encoder_of(model, self.name)
        self._input_names = frozenset(getattr(model.tokenizer, "model_input_names", ()))
        self._dimension = int(model.get_embedding_dimension() or 0)
        self._model = model

    def encode(self, texts: Sequence[str], *, with_tokens: bool) -> list[Encoding]:
        """Encode texts, in order; vector and token states come from one forward pass."""
        self.load()
        assert self._encoder is not None  # noqa: S101 - load() has set it
        return self._encoder.encode(texts, self._forward, with_tokens=with_tokens)

    def _load_model(self) -> SentenceTransformer:
        check_installed()
        directory = local_model_dir(self.name, self._path)
        import torch  # noqa: PLC0415 - two seconds that only users of this backend pay
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415
        from transformers.utils import logging as progress  # noqa: PLC0415

        # Nobody watches a service load its model.
        progress.disable_progress_bar()  # type: ignore[no-untyped-call]

        if self._device == "cpu":
            torch.set_num_threads(self._threads)
        try:
            model = SentenceTransformer(
                str(directory) if directory else hub_name(self.name),
                device=self._device,
                local_files_only=directory is not None,
            )
        except Exception as error:  # the libraries below raise whatever they like
            raise MemoryConfigurationError(
                f"embedding.model: {self.name} could not be loaded from "
                f"{directory or 'the model hub'} ({type(error).__name__}): install "
                "orchestrata-memory[models] for the default model, or set embedding.model_path "
                "to a directory with the model's files"
            ) from error
        model.eval()
        _logger.info("embedding model %s loaded on %s", self.name, self._device)
        return model

    def _forward(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        import torch  # noqa: PLC0415

        assert self._model is not None  # noqa: S101 - load() has set it
        arrays = {
            "input_ids": batch.ids,
            "attention_mask": batch.mask,
            "token_type_ids": batch.type_ids,
        }
        features = {
            name: torch.from_numpy(array).to(self._device)
            for name, array in arrays.items()
            if name in self._input_names or name != "token_type_ids"
        }
        with torch.inference_mode():
            output = self._model(features)
        vectors = output["sentence_embedding"].float().cpu().numpy()
        states = output["token_embeddings"].float().cpu().numpy()
        return vectors, states


def check_installed() -> None:
    """Look for the libraries without importing them.

    Raises:
        MemoryConfigurationError: One is missing, with how to install it.
    """
    missing = [name for name in ("torch", "sentence_transformers") if find_spec(name) is None]
    if missing:
        raise MemoryConfigurationError(
            f"embedding.backend: {' and '.join(missing)} not installed: pip install "
            "sentence-transformers (on Linux a CPU build of torch spares several GB), or set "
            "embedding.backend to onnx"
        )


def _encoder_of(model: SentenceTransformer, name: str) -> WindowedEncoder:
    """An encoder over a copy of the model's tokenizer, whose own settings stay as they are."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise MemoryConfigurationError(
            f"embedding.model: {name} has no fast tokenizer, which late interaction and long "
            "texts need; choose a model that ships tokenizer.json"
        )
    return WindowedEncoder(
        Tokenizer.from_str(backend.to_str()),
        max_length=int(model.max_seq_length or _FALLBACK_WINDOW),
        pad_id=int(getattr(model.tokenizer, "pad_token_id", None) or 0),
    )
