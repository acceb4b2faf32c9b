"""The retrieval set with the real model: rank results as tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestrata_memory.embedding.onnx import OnnxModel
from orchestrata_memory.embedding.token_vectors import pack
from orchestrata_memory.retrieval.base import Passage, Pool
from orchestrata_memory.retrieval.query import plan_query
from orchestrata_memory.retrieval.ranking import rank
from tests.retrieval_ranking.making import ANALYZER, NOW, SETTINGS, keys, statistics_of
from tests.retrieval_ranking.stories import ASKED, SESSIONS, Asked, Told


class Memory:
    """The set, encoded once, as the pool of one caller."""

    def __init__(self) -> None:
        self.model = OnnxModel()
        self.model.load()
        self.told = [
            (session, position, one)
            for session, entries in SESSIONS.items()
            for position, one in enumerate(entries, start=1)
        ]
        self.encodings = self.model.encode([one.text for *_, one in self.told], with_tokens=True)

    def pool(self, vector, caller: str = "ENG:ALPHA") -> Pool:
        told = [
            (self._passage(session, position, one, encoding), float(encoding.vector @ vector))
            for (session, position, one), encoding in zip(self.told, self.encodings, strict=True)
            if not one.private or one.owner == caller
        ]
        passages = [passage for passage, _ in told]
        return Pool(
            candidates=tuple(passages),
            context={one.slot: one for one in passages},
            cosines={passage.key: cosine for passage, cosine in told},
            statistics=statistics_of(passages),
        )

    def ask(self, asked: Asked, caller: str = "ENG:ALPHA") -> list[str]:
        plan = plan_query(asked.question, ANALYZER, now=NOW, known_speakers=asked.speakers)
        [query] = self.model.encode([plan.embedding_text], with_tokens=True)
        found = rank(plan, query, self.pool(query.vector, caller), now=NOW, settings=SETTINGS)
        return keys(found)

    @staticmethod
    def _passage(session: str, position: int, one: Told, encoding) -> Passage:
        return Passage(
            key=one.key,
            version=1,
            slot=(session, one.owner, position),
            terms=tuple(ANALYZER.terms(one.text)),
            speaker=one.by,
            created_at=NOW - timedelta(hours=1),
            occurred_at=datetime.fromisoformat(one.on).replace(tzinfo=UTC),
            tokens=pack(encoding),
        )


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@pytest.mark.traces("REQ-010-015", "REQ-010-016", "REQ-010-018")
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.question)
def test_the_answer_comes_up(memory, asked):
    found = memory.ask(asked)
    assert set(found[: asked.by_rank]) & set(asked.answers), found[:5]


def test_the_set_as_a_whole_keeps_its_quality(memory):
    """Mean reciprocal rank of the first answer."""
    reciprocal = [
        1 / (1 + min(memory.ask(asked).index(answer) for answer in asked.answers))
        for asked in ASKED
    ]
    assert sum(reciprocal) / len(reciprocal) >= 0.9


@pytest.mark.traces("REQ-010-018")
def test_what_another_owner_keeps_private_moves_nothing(memory):
    asked = Asked("connection pool exhausted", ("incident-cause",))
    mine, theirs = memory.ask(asked), memory.ask(asked, caller="ENG:BRAVO")
    assert mine[0] == "incident-cause"
    assert not {"rival-secret", "rival-pool", "rival-dinner"} & set(mine)
    assert theirs[0] == "rival-pool"
