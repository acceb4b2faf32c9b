"""Texts longer than a model's window: cut into overlapping windows, joined again by length.

A text of 10,000 words is about sixty windows of MiniLM. Each window is encoded on its own; the
text's vector is the mean of the windows' vectors, weighted by the word pieces each one adds, so
that no part of a long text is cut off and no part counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.embedding.base import Encoding
from orchestrata_memory.embedding.vectors import unit, unit_rows

if TYPE_CHECKING:
    from tokenizers import Encoding as PieceEncoding
    from tokenizers import Tokenizer

OVERLAP = 32
"""Word pieces that neighbouring windows share, as context for the first of the new ones."""

MAX_TOKENS = 512
"""Token states kept of one text; late interaction keeps fewer still."""

FORWARD_WINDOWS = 16
"""Windows in one forward pass, which bounds its memory whatever the texts' length."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window of one text.

    Attributes:
        text: Index of the text it belongs to.
        ids: Input ids, special tokens included.
        type_ids: Segment ids.
        content: Positions in `ids` of pieces this window adds (no special tokens, no overlap).
        pieces: Those pieces as text.
    """

    text: int
    ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    content: tuple[int, ...]
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows padded to one length.

    Attributes:
        ids: int64, shape (windows, length).
        type_ids: Same shape.
        mask: Same shape; 1 where there is a piece.
    """

    ids: NDArray[np.int64]
    type_ids: NDArray[np.int64]
    mask: NDArray[np.int64]


Forward = Callable[[Batch], tuple[NDArray[np.float32], NDArray[np.float32]]]
"""A forward pass: sentence vectors (windows, dimension), states (windows, length, dimension)."""


class WindowedEncoder:
    """Runs any forward pass over texts of any length.

    Args:
        tokenizer: Used alone by this object: its padding and truncation are set here.
        max_length: The model's window in word pieces, special tokens included.
        pad_id: Id of the padding piece.
    """

    def __init__(self, tokenizer: Tokenizer, *, max_length: int, pad_id: int = 0) -> None:
        self._tokenizer = tokenizer
        self._pad_id = pad_id
        special = tokenizer.num_special_tokens_to_add(is_pair=False)
        self._overlap = min(OVERLAP, max(0, (max_length - special) // 4))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length, stride=self._overlap)

    def encode(
        self, texts: Sequence[str], forward: Forward, *, with_tokens: bool
    ) -> list[Encoding]:
        """Encode texts, in order; windows of like length share a pass, so little is padded."""
        windows = list(self._windows(texts))
        order = sorted(range(len(windows)), key=lambda index: len(windows[index].ids))
        sums: list[NDArray[np.float32] | None] = [None] * len(texts)
        states: dict[int, NDArray[np.float32]] = {}
        wanted = _first_windows(windows) if with_tokens else set()
        for start in range(0, len(order), FORWARD_WINDOWS):
            chosen = order[start : start + FORWARD_WINDOWS]
            vectors, hidden = forward(self._batch([windows[index] for index in chosen]))
            for row, index in enumerate(chosen):
                window = windows[index]
                part = vectors[row].astype(np.float32) * max(1, len(window.content))
                before = sums[window.text]
                sums[window.text] = part if before is None else before + part
                if index in wanted:
                    states[index] = unit_rows(hidden[row][list(window.content)])
        return _assemble(windows, sums, states, with_tokens=with_tokens)

    def _windows(self, texts: Sequence[str]) -> Iterator[Window]:
        for number, encoding in enumerate(self._tokenizer.encode_batch(list(texts))):
            yield _window(number, encoding, skip=0)
            for later in encoding.overflowing:
                yield _window(number, later, skip=self._overlap)

    def _batch(self, windows: Sequence[Window]) -> Batch:
        shape = (len(windows), max(len(window.ids) for window in windows))
        batch = Batch(
            ids=np.full(shape, self._pad_id, dtype=np.int64),
            type_ids=np.zeros(shape, dtype=np.int64),
            mask=np.zeros(shape, dtype=np.int64),
        )
        for row, window in enumerate(windows):
            length = len(window.ids)
            batch.ids[row, :length] = window.ids
            batch.type_ids[row, :length] = window.type_ids
            batch.mask[row, :length] = 1
        return batch


def _window(text: int, encoding: PieceEncoding, *, skip: int) -> Window:
    positions = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
    content = tuple(positions[skip:])
    tokens = encoding.tokens
    return Window(
        text=text,
        ids=tuple(encoding.ids),
        type_ids=tuple(encoding.type_ids),
        content=content,
        pieces=tuple(tokens[index] for index in content),
    )


def _first_windows(windows: Sequence[Window]) -> set[int]:
    """Indices of the windows whose states are kept: the first `MAX_TOKENS` pieces of a text."""
    seen: dict[int, int] = {}
    wanted: set[int] = set()
    for index, window in enumerate(windows):
        if seen.get(window.text, 0) < MAX_TOKENS:
            wanted.add(index)
            seen[window.text] = seen.get(window.text, 0) + len(window.content)
    return wanted


def _assemble(
    windows: Sequence[Window],
    sums: Sequence[NDArray[np.float32] | None],
    states: dict[int, NDArray[np.float32]],
    *,
    with_tokens: bool,
) -> list[Encoding]:
    rows: list[list[NDArray[np.float32]]] = [[] for _ in sums]
    pieces: list[list[str]] = [[] for _ in sums]
    for index, window in enumerate(windows):
        if index in states:
            rows[window.text].append(states[index])
            pieces[window.text].extend(window.pieces)
    encodings: list[Encoding] = []
    for text, total in enumerate(sums):
        vector = unit(total if total is not None else np.zeros(1, dtype=np.float32))
        if not with_tokens:
            encodings.append(Encoding(vector=vector))
            continue
        tokens = np.concatenate(rows[text])[:MAX_TOKENS]
        kept = tuple(pieces[text][:MAX_TOKENS])
        encodings.append(Encoding(vector=vector, tokens=tokens, pieces=kept))
    return encodings
