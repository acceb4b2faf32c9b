"""Records by the values they were read from: reading one again costs a comparison."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from orchestrata_memory.cold.rows import record_from
from orchestrata_memory.models import MemoryRecord

_CHARACTERS: Final = 4_000_000
_MOST: Final = 10_000
_LONGEST: Final = 4_000
"""A longer content is not kept; to read such a record is dear for other reasons."""

_KEY, _CONTENT = 0, 1


class RecordCache:
    """The records read last; some 20 MB when full.

    A record is used again only where every value that came from the graph is the same, so nothing
    outdated is ever given out.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Sequence[Any], MemoryRecord]] = OrderedDict()
        self._characters = 0

    def record(self, values: Sequence[Any]) -> MemoryRecord:
        """As `record_from`."""
        key: str = values[_KEY]
        known = self._kept.get(key)
        if known is not None and known[0] == values:
            self._kept.move_to_end(key)
            return known[1]
        record = record_from(values)
        if len(record.content) <= _LONGEST:
            self._keep(key, values, record)
        return record

    def _keep(self, key: str, values: Sequence[Any], record: MemoryRecord) -> None:
        self._drop(self._kept.pop(key, None))
        self._kept[key] = values, record
        self._characters += len(record.content)
        while self._characters > _CHARACTERS or len(self._kept) > _MOST:
            self._drop(self._kept.popitem(last=False)[1])

    def _drop(self, kept: tuple[Sequence[Any], MemoryRecord] | None) -> None:
        if kept is not None:
            self._characters -= len(kept[1].content)
