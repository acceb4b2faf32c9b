"""How a summary reads.

One line for each memory drawn on, the most wanted first::

    - [2026-05-08] Caroline: I went to the support group. It helped.
    - Melanie: That is great to hear.
    - [2026-05-11] The release was moved to June.

The date stands where it differs from that of the line before, the speaker where somebody other
than the reader said it. A memory that gives more sentences later gets another line. Budgets
below `BARE_BELOW` tokens carry neither: there the words themselves matter more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrata_memory.models import MemoryRecord
from orchestrata_memory.summaries.sentences import Sentence

BARE_BELOW: Final = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a source, as it stands in the summary.

    Attributes:
        source: Index of the source.
        lead: What stands in front of the sentence: a line's head, or white space.
        text: The sentence.
        day: The day that its line, or the last dated one before it, shows.
    """

    source: int
    lead: str
    text: str
    day: str = ""

    @property
    def whole(self) -> str:
        """Lead and text."""
        return self.lead + self.text


class Layout:
    """Puts sentences into lines.

    Args:
        bare: No dates and speakers.
        reader: Who reads; the reader's own words need no name.
    """

    def __init__(self, *, bare: bool, reader: str | None) -> None:
        self._bare = bare
        self._reader = reader

    def piece(
        self, source: int, record: MemoryRecord, sentence: Sentence, after: Piece | None
    ) -> Piece:
        """The sentence of `record`, the source of that index, as it follows the piece `after`."""
        day = after.day if after is not None else ""
        if after is not None and after.source == source:
            return Piece(source, sentence.gap or " ", sentence.text, day)
        line = "- " if after is None else "\n- "
        if self._bare:
            return Piece(source, line, sentence.text)
        shown = record.occurred_at.date().isoformat()
        date = f"[{shown}] " if shown != day else ""
        return Piece(source, f"{line}{date}{self._speaker(record)}", sentence.text, shown)

    def plain(self, piece: Piece) -> Piece:
        """The piece without a line's head, for when a few tokens are left."""
        return Piece(piece.source, "\n" if piece.lead.startswith("\n") else " ", piece.text)

    def _speaker(self, record: MemoryRecord) -> str:
        known = self._reader if self._reader is not None else record.volk_id
        return "" if record.speaker == known else f"{record.speaker}: "
