"""Files of every format, good and hostile, become memories or a named fault."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from orchestrata_memory.errors import MemoryValidationError
from orchestrata_memory.ingest import Format, IngestItem, detect_format, read_items
from orchestrata_memory.ingest.splitting import split_text
from orchestrata_memory.models.validation import check_content, check_identifier

LIMIT = 64 * 1024
LOCOMO = next(
    (
        folder / "shared/data/locomo5.json"
        for folder in Path(__file__).parents
        if (folder / "shared/data/locomo5.json").exists()
    ),
    None,
)
SAMPLE = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_2_date_time": "12:05 am on 29 February, 2024",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "Second session."}],
        "session_10_date_time": "1:56 pm on 8 May, 2023",
        "session_10": [
            {"speaker": "Ann", "dia_id": "D10:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Ann", "dia_id": "D10:2", "text": "", "blip_caption": "two dogs"},
            {"speaker": "Bo", "dia_id": "D10:3", "text": ""},
        ],
        "session_11_date_time": "1:00 pm on 1 June, 2023",
    },
    "qa": [],
}


@pytest.fixture
def file(tmp_path):
    def write(name: str, content: str | bytes | object) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, "utf-8", newline="")
        return path

    return write


def read(path: Path, **options) -> list[IngestItem]:
    items = list(read_items(path, **{"limit_bytes": LIMIT, **options}))
    for item in items:
        check_content(item.content, options.get("limit_bytes", LIMIT))
        check_identifier(item.key, "key")
    assert len({item.key for item in items}) == len(items)
    return items


def fault(path: Path, **options) -> str:
    with pytest.raises(MemoryValidationError) as caught:
        read(path, **options)
    message = str(caught.value)
    message.encode()
    assert path.name in message
    return message


# --- LoCoMo ------------------------------------------------------------------------------


def test_locomo_turns_in_order_of_sessions(file):
    items = read(file("talk.json", [SAMPLE]))
    assert [item.key for item in items] == ["conv-1:D2:1", "conv-1:D10:1", "conv-1:D10:2"]
    assert [item.content for item in items] == [
        "Second session.",
        "Look! [image: a red kite]",
        "[image: two dogs]",
    ]
    assert items[0].occurred_at == datetime(2024, 2, 29, 0, 5, tzinfo=UTC)
    assert items[1].occurred_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert (items[1].speaker, items[1].project_id) == ("Ann", "conv-1")
    assert items[1].session_id == items[2].session_id != items[0].session_id


@pytest.mark.skipif(LOCOMO is None, reason="the data set is not here")
def test_all_of_the_real_data():
    items = read(LOCOMO)
    assert len(items) == 2760
    assert len({item.project_id for item in items}) == 5
    assert all(item.occurred_at and item.speaker and item.session_id for item in items)
    assert sum("[image: " in item.content for item in items) > 100
    assert detect_format(LOCOMO) is Format.LOCOMO


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"session_2": {"not": "a list"}}, "session_2: turns"),
        ({"session_2": ["text"]}, "session_2, turn 1: turn"),
        ({"session_2": [{"speaker": "", "dia_id": "D2:1", "text": "x"}]}, "turn 1: speaker"),
        ({"session_2": [{"speaker": "Bo", "dia_id": "D2:1"}]}, "turn 1: content"),
        ({"session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "a\0"}]}, "NUL"),
        ({"session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "\ud800"}]}, "surrogates"),
        ({"session_2_date_time": "yesterday"}, "date_time"),
    ],
)
def test_locomo_with_a_fault_names_the_turn(file, change, words):
    sample = {**SAMPLE, "conversation": {**SAMPLE["conversation"], **change}}
    message = fault(file("talk.json", [sample]))
    assert words in message


# --- chats -------------------------------------------------------------------------------


def test_chat_lines_with_fields_called_in_many_ways(file):
    lines = [
        {"role": "user", "content": "Hi"},
        {"speaker": "Ann", "text": "Hello", "timestamp": "2026-03-01T10:00:00Z", "session": "s1"},
        {"author": {"name": "Bo", "role": "x"}, "body": "Yo", "ts": 1772359200, "thread_id": 7},
        {"from": "Cy", "message": "Hey", "created_at": "2026-03-01T12:00:00+02:00"},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url"}]},
        {
            "role": "user",
            "name": "dora",
            "content": "ms",
            "time": 1772359200000,
            "tags": ["a", "a"],
        },
        {"role": "user", "content": "naive", "date": "2026-03-01T10:00:00", "project": "p"},
    ]
    text = "\n\n".join(json.dumps(line) for line in lines) + "\n"
    items = read(file("chat.jsonl", text))
    assert [item.content for item in items] == ["Hi", "Hello", "Yo", "Hey", "Look", "ms", "naive"]
    assert [item.speaker for item in items] == ["user", "Ann", "Bo", "Cy", "user", "dora", "user"]
    assert [item.session_id for item in items[:4]] == [None, "s1", "7", None]
    moment = datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert [item.occurred_at for item in items] == [None, *[moment] * 3, None, *[moment] * 2]
    assert items[5].tags == ("a",)
    assert items[6].project_id == "p"


@pytest.mark.parametrize("day", ["20260301", 20260301, "2026-03-01", " 2026-03-01T00:00Z "])
def test_a_day_in_digits_is_no_number_of_seconds(file, day):
    (item,) = read(file("chat.jsonl", json.dumps({"content": "x", "date": day})))
    assert item.occurred_at == datetime(2026, 3, 1, tzinfo=UTC)


def test_a_number_of_too_many_digits_is_said(file):
    assert "digits" in fault(file("chat.json", "[\n" + "1" * 5_000 + "]"))


def test_conversations_with_messages_become_sessions(file):
    talk = {"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}
    lines = read(file("chat.jsonl", "\n".join(json.dumps({**talk, "id": n}) for n in ("x", "y"))))
    assert [item.session_id for item in lines] == ["chat:x"] * 2 + ["chat:y"] * 2
    whole = read(file("chat.json", json.dumps([talk, talk], indent=2)))
    assert [item.content for item in whole] == ["Q", "A"] * 2
    assert len({item.session_id for item in whole}) == 2
    assert len(read(file("one.json", talk))) == 2
    assert len(read(file("indented.json", json.dumps(talk, indent=1)))) == 2
    assert len(read(file("list.json", talk["messages"]))) == 2


def test_what_is_said_twice_is_kept_twice_with_stable_keys(file):
    lines = [{"role": "user", "content": word} for word in ("ok", "ok", "no", "ok")]
    text = "\n".join(map(json.dumps, lines))
    first, again = read(file("chat.jsonl", text)), read(file("chat.jsonl", text))
    assert first == again
    longer = read(file("chat.jsonl", json.dumps({"role": "user", "content": "new"}) + "\n" + text))
    assert {item.key for item in first} < {item.key for item in longer}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"role": "user", "content": "x"', "is not JSON"),
        ('{"role": "user", "content": 5}', "content: must be text"),
        ('{"role": "a\\nb", "content": "x"}', "speaker"),
        ('{"role": "u", "content": "x", "time": "soon"}', "timestamp"),
        ('{"role": "u", "content": "x", "time": "NaN"}', "timestamp"),
        ('{"role": "u", "content": "x", "time": 1e300}', "timestamp"),
        ('{"role": "u", "content": "x", "time": true}', "timestamp"),
        ('{"role": "u", "content": "a\\u0000b"}', "NUL"),
        ('{"role": "u", "content": "\\ud800"}', "surrogates"),
        ('{"role": "u", "content": "x", "tags": "abc"}', "tags"),
        ('{"messages": [1]}', "not an object"),
        ("[1]", "not an object"),
        ("null", "not an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"role": "u", "content": "x", "time": "2024"}', "timestamp"),
        ('{"role": "u", "content": "x", "time": 12.5}', "timestamp"),
        ('{"role": "u", "content": "x", "n": ' + "1" * 5_000 + "}", "too long"),
    ],
)
def test_a_broken_line_is_named_and_those_before_it_are_given(file, line, words):
    good = '{"role": "user", "content": "good"}'
    path = file("chat.jsonl", f"{good}\n{line}\n{good}\n")
    assert "line 2" in fault(path)
    assert words in fault(path)
    items = read_items(path, limit_bytes=LIMIT)
    assert next(items).content == "good"


def test_a_long_message_is_cut_at_sentences(file):
    text = " ".join(f"This is sentence number {number}." for number in range(100))
    items = read(file("chat.jsonl", json.dumps({"content": text})), limit_bytes=500)
    assert " ".join(item.content for item in items) == text
    assert all(item.content.endswith(".") for item in items)


# --- documents ---------------------------------------------------------------------------


def test_text_is_cut_into_paragraphs(file):
    path = file(
        "notes.txt", "\ufeffFirst line\r\nsame paragraph\r\n\r\n \t\r\n\r\nSecond.\n\n\nThird"
    )
    contents = [item.content for item in read(path)]
    assert contents == ["First line\nsame paragraph", "Second.", "Third"]


def test_markdown_parts_begin_with_their_headings(file):
    path = file(
        "guide.md",
        """Intro before.

# Guide #

Text one
goes on.

## Install

```sh
# not a heading

make
```
- a
- b

Setext
------
Below setext.

#no heading
# Other
####### seven is none

~~~
```
# still code
~~~
""",
    )
    assert [item.content for item in read(path)] == [
        "Intro before.",
        "Guide\n\nText one\ngoes on.",
        "Guide > Install\n\n```sh\n# not a heading\n\nmake\n```\n- a\n- b",
        "Guide > Setext\n\nBelow setext.\n".strip(),
        "Guide > Setext\n\n#no heading",
        "Other\n\n####### seven is none",
        "Other\n\n~~~\n```\n# still code\n~~~",
    ]


def test_parts_of_a_large_document_have_ids_of_their_own(file):
    paragraph = "The same paragraph. " * 500
    path = file("big.md", f"# {'long heading ' * 60}\n\n{paragraph}\n\n{paragraph}\n\nEnd.")
    items = read(path, part_bytes=300)
    assert len(items) > 60
    assert all(len(item.content.encode()) <= 300 for item in items)
    assert items == read(path, part_bytes=300)
    changed = read(file("big.md", f"New first.\n\n{path.read_text('utf-8')}"), part_bytes=300)
    assert {item.key for item in items} < {item.key for item in changed}


def test_a_document_is_read_as_it_is_needed(file):
    path = file("long.txt", b"One.\n\nTwo.\n\n\xff broken")
    items = read_items(path, limit_bytes=LIMIT)
    assert [next(items).content, next(items).content] == ["One.", "Two."]
    with pytest.raises(MemoryValidationError, match="line 5: is not UTF-8"):
        next(items)


def test_a_paragraph_without_end_is_ended(file):
    path = file("endless.txt", "word " * 20 + "\n")
    text = path.read_text("utf-8") * 30_000
    items = read(file("endless.txt", text), part_bytes=2000)
    assert sum(item.content.count("word") for item in items) == 600_000


# --- any file ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.jsonl", "a.json", "a"])
@pytest.mark.parametrize("content", [b"", b"\n \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_says_so(file, name, content):
    path = file(name, content)
    assert "JSON" in fault(path) if name == "a.json" else "no text" in fault(path)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.jsonl", "a.json", "a"])
@pytest.mark.parametrize(
    "content", ["Grüße".encode("latin-1"), "text".encode("utf-16"), b"\x7fELF\0\0", b"ok\n\0"]
)
def test_what_is_no_utf8_text_says_so(file, name, content):
    message = fault(file(name, content))
    assert "UTF-8" in message or "NUL" in message or "JSON" in message


def test_truncated_json_names_its_line(file):
    text = json.dumps([SAMPLE], indent=1)
    message = fault(file("talk.json", text[: len(text) // 2]))
    assert "is not JSON" in message
    assert ", line " in message


@pytest.mark.parametrize("content", ["[]", "{}", "[{}]", '{"messages": []}', "[[]]", "5"])
def test_json_without_messages_says_so(file, content):
    fault(file("a.json", content))


def test_missing_files_and_folders_say_so(tmp_path):
    for path in (tmp_path / "missing.txt", tmp_path, tmp_path / "missing"):
        with pytest.raises(MemoryValidationError, match="cannot be read"):
            list(read_items(path, limit_bytes=LIMIT))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", "x", Format.MARKDOWN),
        ("a.MD", "x", Format.MARKDOWN),
        ("a.txt", "# x", Format.TEXT),
        ("a.jsonl", "", Format.CHAT_LINES),
        ("a.json", '{"role": "u"}\n{"role": "v"}', Format.CHAT_LINES),
        ("a.json", '[{"role": "u"}]', Format.CHAT),
        ("a.json", '[{"conversation": {"session_1": []}}]', Format.LOCOMO),
        ("a.json", '{"conversation":\n {"session_1": []}}', Format.LOCOMO),
        ("a.json", '{"conversation": "c1", "text": "x"}', Format.CHAT_LINES),
        ("noname", '\n{"role": "u"}', Format.CHAT_LINES),
        ("noname", "words\n\n## Heading", Format.MARKDOWN),
        ("noname", "just words", Format.TEXT),
        ("notes.log", "just words", Format.TEXT),
        ("notes.log", "[2024-05-01 10:00] it began", Format.TEXT),
        ("notes.log", "[1]\n\n# Sources", Format.MARKDOWN),
        ("notes.log", "{% block %}\ntext", Format.TEXT),
        ("notes.log", '[{"role": "u"}]', Format.CHAT),
        ("notes.log", '{"messages":\n []}', Format.CHAT),
        ("notes.log", "[" * 100_000, Format.TEXT),
    ],
)
def test_formats_are_found_out(file, name, content, expected):
    assert detect_format(file(name, content)) is expected


# --- cutting -----------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=400)


@given(texts, st.integers(min_value=4, max_value=80))
def test_cutting_loses_nothing_but_blanks(text, limit):
    parts = list(split_text(text, limit))
    assert all(part.strip() == part and part for part in parts)
    assert all(len(part.encode()) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(
    st.lists(st.sampled_from(["Hi there.", "Is it?", "Yes!", "“Quoted.”", "好的。"]), min_size=2)
)
def test_sentences_that_fit_stay_whole(sentences):
    text = " ".join(sentences)
    for part in split_text(text, 40):
        assert part.endswith((".", "?", "!", "”", "。"))


@pytest.mark.parametrize("cluster", ["e\u0301", "👩‍👩‍👧", "🇩🇪", "한"])
def test_what_is_one_character_to_a_reader_is_not_cut(cluster):
    parts = list(split_text(cluster * 40, 100))
    assert "".join(parts) == cluster * 40
    assert all(
        regex.findall(r"\X", part) == [cluster] * (len(part) // len(cluster)) for part in parts
    )


def test_cutting_a_large_text_takes_time_in_proportion():
    parts = list(split_text("x" * 3_000_000, 1000))
    assert len(parts) <= 3_100
