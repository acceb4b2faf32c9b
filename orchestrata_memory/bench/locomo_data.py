"""LoCoMo's conversations as the bench asks about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrata_memory.errors import MemoryValidationError

ADVERSARIAL = 5
"""The category of questions whose answer is not in the conversation."""

_EVIDENCE = re.compile(r"D:?(\d+):0?(\d+)")
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn, as spoken, with the caption of its picture if there is one."""

    turn_id: str
    session: int
    speaker: str
    text: str
    occurred_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and the turns that answer it."""

    question: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation of the data set."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Asked, ...]

    def sessions(self) -> list[list[Turn]]:
        """The turns of each session."""
        by_session: dict[int, list[Turn]] = {}
        for turn in self.turns:
            by_session.setdefault(turn.session, []).append(turn)
        return list(by_session.values())


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a LoCoMo file.

    Raises:
        MemoryValidationError: It is not one.
        OSError: It cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [_conversation(item, number) for number, item in enumerate(data)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{path} is no LoCoMo file ({type(error).__name__}: {error})"
        raise MemoryValidationError("FILE", problem) from error


def _conversation(item: dict[str, Any], number: int) -> Conversation:
    turns = tuple(_turns(item["conversation"]))
    known = {turn.turn_id for turn in turns}
    questions = (
        Asked(
            question=asked["question"],
            category=int(asked["category"]),
            evidence=evidence_of(asked.get("evidence", [])) & known,
        )
        for asked in item["qa"]
    )
    return Conversation(
        name=str(item.get("sample_id", f"conversation-{number}")),
        turns=turns,
        questions=tuple(q for q in questions if q.category != ADVERSARIAL and q.evidence),
    )


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    number = 1
    while f"session_{number}" in conversation or f"session_{number}_date_time" in conversation:
        when = session_time(conversation.get(f"session_{number}_date_time", ""))
        for turn in conversation.get(f"session_{number}") or ():
            caption = turn.get("blip_caption")
            yield Turn(
                turn_id=turn["dia_id"],
                session=number,
                speaker=turn["speaker"],
                text=turn["text"] + (f" [image: {caption}]" if caption else ""),
                occurred_at=when,
            )
        number += 1


def session_time(text: str) -> str | None:
    """``1:56 pm on 8 May, 2023`` as ISO 8601 in UTC; None where it is not understood."""
    try:
        return datetime.strptime(text.strip(), _DATE).replace(tzinfo=UTC).isoformat()
    except ValueError:
        return None


def evidence_of(listed: Iterable[str]) -> frozenset[str]:
    """Turn ids named as evidence; some are malformed or joined in one text."""
    return frozenset(
        f"D{session}:{int(turn)}" for text in listed for session, turn in _EVIDENCE.findall(text)
    )
