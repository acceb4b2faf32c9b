"""What the hot index keeps of one memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrata_memory.models import MemoryRecord
from orchestrata_memory.retrieval.base import Passage


@dataclass(slots=True, kw_only=True)
class Entry:
    """What the index keeps of one memory.

    Attributes:
        header: The record without content, summary and unneeded metadata.
        passage: The same for the ranking; its terms are shared strings.
        unembeddable: The model failed on this text; it is found by keywords only.
    """

    row: int
    header: MemoryRecord
    passage: Passage
    unembeddable: bool = False

    def keep_tokens(self, tokens: bytes | None) -> None:
        """Keep the token vectors that came with its vector; searches under way keep the old."""
        self.passage = replace(self.passage, tokens=tokens)


def facets_of(entry: Entry) -> list[tuple[str, str]]:
    """Names and values by which the index finds it."""
    header = entry.header
    facets = [
        ("session", header.session_id),
        ("owner", header.volk_id),
        ("speaker", entry.passage.speaker),
        *(("reader", volk) for volk in dict.fromkeys(header.shared_with)),
        *(("tag", tag) for tag in dict.fromkeys(header.tags)),
    ]
    if header.task_id is not None:
        facets.append(("task", header.task_id))
    if header.project_id is not None:
        facets.append(("project", header.project_id))
    return facets
