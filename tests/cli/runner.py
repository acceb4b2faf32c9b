"""Runs the command line in this process, as a shell would."""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from orchestrata_memory.cli.app import main


@dataclass(frozen=True, kw_only=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Stdin:
    def __init__(self, content: bytes):
        self.buffer = io.BytesIO(content)


def run(*arguments, env=None, stdin=b"", width=200):
    """One command; `env` replaces every variable of the product's own."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("ORCHESTRATA_MEMORY", "ANTHROPIC"))
    }
    clean |= {"COLUMNS": str(width), **(env or {})}
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, clean, clear=True),
        patch.object(sys, "stdin", Stdin(stdin)),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main([str(argument) for argument in arguments])
    return Outcome(code=code, out=out.getvalue(), err=err.getvalue())
