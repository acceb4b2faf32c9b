"""What search keeps of a record besides its terms and vectors, and looks at before the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrata_memory.cold.base import Readable
from orchestrata_memory.models import MemoryClassification, MemoryRecord

KEPT_METADATA: Final = frozenset({"relevance", "importance", "occurred_at", "speaker"})
"""Metadata that ranking looks at; the rest is fetched with the content of what is returned."""


def header_of(record: MemoryRecord) -> MemoryRecord:
    """The record without what neither the rules nor ranking look at."""
    kept: Mapping[str, object] = record.metadata
    metadata = {name: value for name, value in kept.items() if name in KEPT_METADATA}
    return record.changed(content="", summary=None, metadata=metadata)


def may_read(header: MemoryRecord, readable: Readable | None) -> bool:
    """Whether one record passes the pre-filter."""
    if readable is None or header.volk_id == readable.volk_id:
        return True
    if header.classification is not MemoryClassification.PRIVATE:
        return True
    return not {readable.volk_id, *readable.grantors}.isdisjoint(header.shared_with)
