"""Packing sentences into a token budget, exactly.

Token counts do not add up: a word may merge with what stands before it. So pieces are counted
alone while filling, the whole text is counted when the budget seems full, and the difference
corrects the running count; what is over is taken off the end. The result was counted as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrata_memory.summaries.layout import Layout, Piece
from orchestrata_memory.summaries.repetition import Said
from orchestrata_memory.summaries.sentences import Sentence, split
from orchestrata_memory.summaries.sources import SourceMemory
from orchestrata_memory.tokens.base import ITokenCounter

MISSES: Final = 24
"""Sentences in a row that may not fit before a pass over the sources ends."""


@dataclass(slots=True)
class _Line:
    """What is left of one source.

    Attributes:
        sentences: All of its sentences.
        at: Position of the next one to look at.
        repeats: Sentences passed over because something like them, not the very same, was said.
    """

    sentences: list[Sentence]
    at: int = 0
    repeats: list[Sentence] = field(default_factory=list)

    def put_back(self, text: str) -> None:
        """Go back to the last sentence taken."""
        while self.at > 0:
            self.at -= 1
            if self.sentences[self.at].text == text:
                return


class Packer:
    """Takes sentences in a given order until the budget is full.

    Args:
        sources: The memories.
        counter: What counts.
        max_tokens: The budget.
        layout: How it reads.
    """

    def __init__(
        self,
        sources: Sequence[SourceMemory],
        *,
        counter: ITokenCounter,
        max_tokens: int,
        layout: Layout,
    ) -> None:
        self.max_tokens = max_tokens
        self.pieces: list[Piece] = []
        self.turned_away: list[Piece] = []
        self._sources = sources
        self._counter = counter
        self._layout = layout
        self._lines: dict[int, _Line] = {}
        self._said = Said()
        self._tokens = 0
        self._exact = True
        self._lenient = False

    @property
    def text(self) -> str:
        """The summary so far."""
        return "".join(piece.whole for piece in self.pieces)

    @property
    def tokens(self) -> int:
        """Tokens of `text`, exactly."""
        if not self._exact:
            self._tokens, self._exact = self._counter.count(self.text), True
        return self._tokens

    def fill(self, order: Sequence[int], *, budget: int, share: int | None = None) -> None:
        """Take sentences of the sources in that order, each source's in its own order.

        Args:
            order: Indices of sources.
            budget: Tokens the text may have when this returns; at most `max_tokens`.
            share: Tokens one source may give, its first sentence aside; None: no bound.
        """
        misses = 0
        for source in order:
            if not self._take_from(source, budget, share):
                misses += 1
                if misses >= MISSES or self._is_worth_cutting(budget):
                    break
        self._trim(budget)

    def admit_repeats(self) -> None:
        """From now on turn away only the very same; what was passed over comes first again."""
        self._lenient = True
        self.turned_away.clear()
        for line in self._lines.values():
            line.sentences = [*line.repeats, *line.sentences[line.at :]]
            line.at = 0
            line.repeats = []

    def repeats_tokens(self, order: Sequence[int]) -> int:
        """Tokens of what `admit_repeats` would admit."""
        texts = {item.text for source in order for item in self._line(source).repeats}
        return sum(map(self._counter.count, texts))

    def has_more(self, source: int) -> bool:
        """Whether it has a sentence that was neither taken nor said by another one."""
        return next(self._upcoming(source), None) is not None

    def next_piece(self, source: int) -> Piece | None:
        """The source's next sentence as it would follow now, or None."""
        sentence = next(self._upcoming(source), None)
        return None if sentence is None else self._piece(source, sentence)

    def end_with(self, piece: Piece) -> None:
        """Put a piece, or a part of one, at the end; the caller has counted."""
        self.pieces.append(piece)
        self._exact = False

    def _take_from(self, source: int, budget: int, share: int | None) -> bool:
        """Take sentences of one source; False when one did not fit."""
        given = 0
        for sentence in self._upcoming(source):
            tokens = self._try(source, sentence, budget, most=None if not given else share)
            if tokens is None:
                return False
            if tokens == 0:
                break
            given += tokens
            share = None if share is None else share - tokens
            self._line(source).at += 1
        return True

    def _try(
        self, source: int, sentence: Sentence, budget: int, *, most: int | None = None
    ) -> int | None:
        """Take one sentence.

        Returns:
            Its tokens; 0 when that is more than `most`; None when the budget has no room.
        """
        piece = self._piece(source, sentence)
        tokens = max(1, self._counter.count(piece.whole))
        if most is not None and tokens > most:
            return 0
        if self._tokens + tokens > budget and self.tokens + tokens > budget:
            self.turned_away.append(piece)
            return None
        self.pieces.append(piece)
        self._said.add(sentence.text)
        self._tokens += tokens
        self._exact = False
        return tokens

    def _trim(self, budget: int) -> None:
        while self.pieces and self.tokens > budget:
            piece = self.pieces.pop()
            self._said.take_back(piece.text)
            self._line(piece.source).put_back(piece.text)
            self.turned_away.insert(0, piece)
            self._exact = False

    def _is_worth_cutting(self, budget: int) -> bool:
        """So much room is left that a part of the piece just turned away serves better."""
        room = budget - self.tokens
        whole = self._counter.count(self.turned_away[-1].whole)
        return room * 4 >= budget or room * 2 >= whole

    def _upcoming(self, source: int) -> Iterator[Sentence]:
        """The source's sentences from the next one on; looking at one does not take it."""
        line = self._line(source)
        while line.at < len(line.sentences):
            sentence = line.sentences[line.at]
            if self._said.is_same(sentence.text):
                line.at += 1
            elif not self._lenient and self._said.is_repetition(sentence.text):
                line.repeats.append(sentence)
                line.at += 1
            else:
                yield sentence

    def _piece(self, source: int, sentence: Sentence) -> Piece:
        after = self.pieces[-1] if self.pieces else None
        return self._layout.piece(source, self._sources[source].record, sentence, after)

    def _line(self, source: int) -> _Line:
        if source not in self._lines:
            self._lines[source] = _Line(split(self._sources[source].record.content))
        return self._lines[source]
