"""Token vectors of a memory, packed for late interaction: 384 signs, 48 bytes, a word piece.

Late interaction compares each word of a query with each word piece of a memory. For that the
signs of a piece's state say nearly all: on LoCoMo they rank as well as the floats do (0.918
against 0.920 any@10) in a thirty-second of the room. Only the memory's side is packed; the
query keeps its floats. Pieces without content of their own (function words, punctuation) are
left out unless there is nothing else.

Layout: magic ``T``, format version, dimension and count as big-endian 16 bits, then the rows,
each padded to whole bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.errors import MemoryEmbeddingError

MAX_TOKENS: Final = 256
"""Most pieces kept of one memory; its first ones."""

_HEADER: Final = struct.Struct(">cBHH")
_COUNT_AT: Final = 4
_MAGIC: Final = b"T"
_VERSION: Final = 1

FUNCTION_WORDS: Final = frozenset(
    """a about after all also am an and any are as at be because been before being but by can
    could did do does doing for from had has have having he her hers him his how i if in into is
    it its just me more most my no nor not of off on once only or other our ours out over own she
    should so some such than that the their theirs them then there these they this those through
    to too under until up very was we were what when where which while who whom why will with
    would you your yours s t d ll m re ve don""".split()  # noqa: SIM905 - reads as a list of words
)
"""English words that carry no content of their own, in the pieces' spelling."""


def pack(encoding: Encoding) -> bytes:
    """The signs of the content pieces' states; a header alone when there are no states.

    Packing what `unpack` gave changes nothing.
    """
    states = encoding.tokens
    if states is None:
        return _HEADER.pack(_MAGIC, _VERSION, len(encoding.vector), 0)
    kept = states[content_positions(encoding.pieces)[:MAX_TOKENS]]
    bits = np.packbits(kept >= 0, axis=1)
    return _HEADER.pack(_MAGIC, _VERSION, states.shape[1], len(kept)) + bits.tobytes()


def content_positions(pieces: Sequence[str]) -> list[int]:
    """Positions of pieces that carry content; all of them when none does."""
    content = [index for index, piece in enumerate(pieces) if _has_content(piece)]
    return content or list(range(len(pieces)))


def unpack(packed: bytes) -> NDArray[np.float32]:
    """Unit rows of plus or minus 1/sqrt(dimension), shape (count, dimension).

    Raises:
        MemoryEmbeddingError: Not what `pack` made, or of a format this version does not know.
    """
    dimension, count = dimension_and_count(packed)
    width = (dimension + 7) // 8
    rows = np.frombuffer(packed, dtype=np.uint8, offset=_HEADER.size).reshape(count, width)
    signs = np.unpackbits(rows, axis=1, count=dimension).astype(np.float32)
    signs *= 2 / np.sqrt(dimension, dtype=np.float32)
    signs -= 1 / np.sqrt(dimension, dtype=np.float32)
    return signs


def dimension_and_count(packed: bytes) -> tuple[int, int]:
    """What the header says.

    Raises:
        MemoryEmbeddingError: Not what `pack` made, or of a format this version does not know.
    """
    if len(packed) < _HEADER.size:
        raise MemoryEmbeddingError("packed token vectors are cut off")
    magic, version, dimension, count = _HEADER.unpack_from(packed)
    if magic != _MAGIC or version != _VERSION or dimension == 0:
        raise MemoryEmbeddingError(
            f"packed token vectors of format {version} are not known here: re-embed the memory"
        )
    if len(packed) != _HEADER.size + count * ((dimension + 7) // 8):
        raise MemoryEmbeddingError("packed token vectors are cut off")
    return dimension, count


def rows_of(packed: bytes | None, dimension: int) -> bytes:
    """The rows alone; empty without any, and for what is of another dimension or format."""
    if not packed or not packed.startswith(_start_of(dimension)):
        return b""
    width, count = (dimension + 7) // 8, int.from_bytes(packed[_COUNT_AT : _HEADER.size], "big")
    rows = packed[_HEADER.size :]
    return rows if len(rows) == count * width else b""


@cache
def _start_of(dimension: int) -> bytes:
    return _HEADER.pack(_MAGIC, _VERSION, dimension, 0)[:_COUNT_AT]


def _has_content(piece: str) -> bool:
    if piece.startswith("##"):
        return True
    return piece.lower() not in FUNCTION_WORDS and any(letter.isalnum() for letter in piece)
