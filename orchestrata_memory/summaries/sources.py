"""What a summary is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.models import MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMemory:
    """One memory that the caller may read.

    Attributes:
        record: The memory.
        vector: Its unit vector, or None while it has none; helps against repetition, and gives
            its relevance where `relevance` is None.
        relevance: How well it fits the current context, in [0, 1], as a search scored it; None:
            taken from the vectors.
    """

    record: MemoryRecord
    vector: NDArray[np.float32] | None = None
    relevance: float | None = None
