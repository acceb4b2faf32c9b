"""What the hot index keeps of one memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrata_memory.models import MemoryRecord
from orchestrata_memory.retrieval.base import Passage, Slot


@dataclass(slots=True, kw_only=True)
class Entry:
    """What the index keeps of one memory.

    Attributes:
        header: The record without content, summary and unneeded metadata.
        terms: Index terms in text order, as shared strings.
        replica: The copy is a replica; the memory itself lives in cold.
        tokens: Packed token vectors, if its vector came with some.
        unembeddable: The model failed on this text; it is found by keywords only.
    """

    row: int
    header: MemoryRecord
    terms: tuple[str, ...]
    slot: Slot
    speaker: str
    occurred_at: datetime
    relevance: float | None
    replica: bool
    tokens: bytes | None = None
    unembeddable: bool = False
    _plain: Passage | None = None

    def keep_tokens(self, tokens: bytes | None) -> None:
        """Keep the token vectors that came with its vector."""
        self.tokens, self._plain = tokens, None

    def plain(self) -> Passage:
        """The passage without a cosine, made once."""
        if self._plain is None:
            self._plain = self.passage()
        return self._plain

    def passage(self, cosine: float | None = None) -> Passage:
        """What ranking needs to know."""
        header = self.header
        return Passage(
            key=header.key,
            version=header.version,
            slot=self.slot,
            terms=self.terms,
            speaker=self.speaker,
            created_at=header.created_at,
            occurred_at=self.occurred_at,
            relevance=self.relevance,
            cosine=cosine,
            tokens=self.tokens,
            tier="hot",
        )


def facets_of(entry: Entry) -> list[tuple[str, str]]:
    """Names and values by which the index finds it."""
    header = entry.header
    facets = [
        ("session", header.session_id),
        ("owner", header.volk_id),
        ("speaker", entry.speaker),
        *(("reader", volk) for volk in dict.fromkeys(header.shared_with)),
        *(("tag", tag) for tag in dict.fromkeys(header.tags)),
    ]
    if header.task_id is not None:
        facets.append(("task", header.task_id))
    if header.project_id is not None:
        facets.append(("project", header.project_id))
    return facets
