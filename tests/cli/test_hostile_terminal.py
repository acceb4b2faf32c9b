"""What others stored, or a shell handed over, neither drives a terminal nor gets another caller."""

import pytest

from orchestrata_memory.cli.answers import visible
from orchestrata_memory.cli.app import main
from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.cli.options import Options


def test_control_characters_are_spelt_out():
    assert visible("\x1b]0;pwned\x07hi\x1b[2J\tkept\n") == "\\x1b]0;pwned\\x07hi\\x1b[2J\tkept\n"


def test_an_empty_name_is_not_the_default_caller():
    assert Options().caller == "USR:LOCAL"
    assert Options().overridden({"volk": "", "session": ""}).caller == ""
    assert Options().overridden({"session": ""}).session_id == ""


@pytest.mark.parametrize("arguments", [["store", "lone \udcff byte"], ["search", "\udcfe"]])
def test_bytes_that_are_no_text_are_wrong_usage(arguments, capsys):
    assert main(arguments) == ExitCode.USAGE
    assert "UTF-8" in capsys.readouterr().err
