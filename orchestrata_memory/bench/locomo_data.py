"""LoCoMo's conversations as the bench asks about them: the turns as `ingest` reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.ingest import Format, IngestItem, read_items

ADVERSARIAL = 5
"""The category of questions whose answer is not in the conversation."""

_EVIDENCE = re.compile(r"D:?(\d+):0?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and the keys of the turns that answer it."""

    question: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation of the data set."""

    name: str
    turns: tuple[IngestItem, ...]
    questions: tuple[Asked, ...]

    def sessions(self) -> list[list[IngestItem]]:
        """The turns of each session."""
        by_session: dict[str, list[IngestItem]] = {}
        for turn in self.turns:
            by_session.setdefault(turn.session_id or "", []).append(turn)
        return list(by_session.values())


def read_conversations(path: Path, *, limit_bytes: int) -> list[Conversation]:
    """The conversations of a LoCoMo file.

    Raises:
        MemoryValidationError: It is not one.
        OSError: It cannot be read.
    """
    by_project: dict[str, list[IngestItem]] = {}
    for item in read_items(path, limit_bytes=limit_bytes, form=Format.LOCOMO):
        by_project.setdefault(item.project_id or "", []).append(item)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        questions = [sample["qa"] for sample in (data if isinstance(data, list) else [data])]
        return [
            _conversation(name, turns, asked)
            for (name, turns), asked in zip(by_project.items(), questions, strict=True)
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{path} holds no questions of LoCoMo ({type(error).__name__}: {error})"
        raise MemoryValidationError("FILE", problem) from error


def _conversation(
    name: str, turns: Sequence[IngestItem], asked: Iterable[dict[str, Any]]
) -> Conversation:
    known = {turn.key for turn in turns}
    questions = (
        Asked(
            question=item["question"],
            category=int(item["category"]),
            evidence=frozenset(f"{name}:{turn}" for turn in evidence_of(item["evidence"])) & known,
        )
        for item in asked
        if "evidence" in item
    )
    return Conversation(
        name=name,
        turns=tuple(turns),
        questions=tuple(q for q in questions if q.category != ADVERSARIAL and q.evidence),
    )


def evidence_of(listed: Iterable[str]) -> frozenset[str]:
    """Turn ids named as evidence; some are malformed or joined in one text."""
    return frozenset(
        f"D{session}:{int(turn)}" for text in listed for session, turn in _EVIDENCE.findall(text)
    )
