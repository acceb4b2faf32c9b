"""What others stored, or a shell handed over, neither drives a terminal nor gets another caller."""

import io
from contextlib import redirect_stdout
from datetime import UTC, datetime

import pytest

from orchestrata_memory.cli.answers import (
    counted,
    entries_table,
    entry_table,
    show,
    styled,
    table,
    visible,
)
from orchestrata_memory.cli.app import main
from orchestrata_memory.cli.command import console
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.options import Options
from orchestrata_memory.models import MemoryEntry

NOW = datetime(2025, 3, 1, tzinfo=UTC)


def test_control_characters_are_spelt_out():
    assert visible("\x1b]0;pwned\x07hi\x1b[2J\tkept\n") == "\\x1b]0;pwned\\x07hi\\x1b[2J\tkept\n"


@pytest.mark.parametrize("text", ["[/x]", "[red]gone[/red]", ":smile:", "a [bold]b"])
def test_names_and_texts_are_shown_as_they_are(text):
    drawn = io.StringIO()
    entry = MemoryEntry(
        key=text,
        content=text,
        volk_id=text,
        session_id=text,
        tags=(text,),
        created_at=NOW,
        updated_at=NOW,
        relevance_score=0.5,
    )
    with redirect_stdout(drawn):
        view = show(
            f"{text} is shared",
            styled(f"dim {text}", "dim"),
            table(f"title {text}", ("column",), [(f"cell {text}",)]),
            entries_table("Found", [entry]),
            entry_table(entry),
        )
        view(console())

    shown = drawn.getvalue()
    for place in (f"{text} is shared", f"dim {text}", f"title {text}", f"cell {text}", f"#{text}"):
        assert place in shown


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 memories"), (1, "1 memory"), (2000, "2,000 memories")]
)
def test_numbers_go_with_their_nouns(number, told):
    assert counted(number, "memory", "memories") == told


def test_an_empty_name_is_not_the_default_caller():
    assert Options().caller == "USR:LOCAL"
    assert Options().overridden({"volk": "", "session": ""}).caller == ""
    assert Options().overridden({"session": ""}).session_id == ""


@pytest.mark.parametrize("arguments", [["store", "lone \udcff byte"], ["search", "\udcfe"]])
def test_bytes_that_are_no_text_are_wrong_usage(arguments, capsys):
    assert main(arguments) == ExitCode.USAGE
    assert "UTF-8" in capsys.readouterr().err
