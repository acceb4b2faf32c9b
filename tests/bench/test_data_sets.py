"""Data sets are read as their makers meant them, and what is none is refused."""

import json
from datetime import UTC, datetime

import pytest

from orchestrata_memory.bench.intents import read_intents
from orchestrata_memory.bench.locomo_data import evidence_of, read_conversations
from orchestrata_memory.errors import MemoryValidationError

CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ana", "text": "I painted a lake."},
            {"dia_id": "D1:2", "speaker": "Ben", "text": "See!", "blip_caption": "a red boat"},
        ],
        "session_2_date_time": "9:01 am on 12 June, 2023",
        "session_2": [],
        "session_3": [{"dia_id": "D3:1", "speaker": "Ana", "text": "Hello again."}],
    },
    "qa": [
        {"question": "What did Ana paint?", "evidence": ["D1:1"], "category": 4},
        {"question": "Both?", "evidence": ["D1:1; D3:01"], "category": 1},
        {"question": "Nowhere?", "evidence": ["D9:9"], "category": 2},
        {"question": "Nothing?", "evidence": [], "category": 3},
        {"question": "A trap?", "evidence": ["D1:2"], "category": 5},
    ],
}


@pytest.fixture
def locomo(tmp_path):
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps([CONVERSATION]))
    return file


def test_a_conversation_has_its_turns_by_session(locomo):
    (conversation,) = read_conversations(locomo, limit_bytes=65_536)

    assert conversation.name == "conv-1"
    assert [[turn.content for turn in session] for session in conversation.sessions()] == [
        ["I painted a lake.", "See! [image: a red boat]"],
        ["Hello again."],
    ]
    first, _, third = conversation.turns
    assert first.speaker == "Ana"
    assert first.occurred_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert third.occurred_at is None


def test_only_questions_with_evidence_that_exists_are_asked_and_no_traps(locomo):
    (conversation,) = read_conversations(locomo, limit_bytes=65_536)

    assert [(asked.question, asked.evidence) for asked in conversation.questions] == [
        ("What did Ana paint?", {"conv-1:D1:1"}),
        ("Both?", {"conv-1:D1:1", "conv-1:D3:1"}),
    ]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (["D1:3"], {"D1:3"}),
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D:11:26"], {"D11:26"}),
        (["D30:05"], {"D30:5"}),
        (["D"], set()),
    ],
)
def test_evidence_survives_its_spelling(listed, expected):
    assert evidence_of(listed) == expected


@pytest.mark.parametrize("text", ["", "{}", '{"train": [["a"]], "test": []}', "[1]", "not json"])
def test_a_file_that_is_no_data_set_is_a_clear_error(tmp_path, text):
    file = tmp_path / "data.json"
    file.write_text(text)

    if text != "{}":
        with pytest.raises(MemoryValidationError, match=r"data\.json"):
            read_conversations(file, limit_bytes=65_536)
    with pytest.raises(MemoryValidationError, match=r"data\.json"):
        read_intents(file)


def test_intents_are_shuffled_the_same_way_every_time(tmp_path):
    file = tmp_path / "clinc.json"
    train = [[f"text {number}", f"intent {number // 10}"] for number in range(200)]
    file.write_text(json.dumps({"train": train, "test": [["asked", "intent 3"]]}))

    first, second = read_intents(file), read_intents(file)

    assert first == second
    assert sorted([item.text, item.intent] for item in first.stored) == sorted(train)
    neighbours = zip(first.stored, first.stored[1:], strict=False)
    same = sum(a.intent == b.intent for a, b in neighbours)
    assert same < 40  # in the file's order it would be 180
    assert first.asked[0].intent == "intent 3"
