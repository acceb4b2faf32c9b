"""The examples of the README run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def run(code: str, data_dir: Path) -> str:
    environment = {**os.environ, "ORCHESTRATA_MEMORY_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.servers
def test_the_ten_lines_find_what_they_stored(tmp_path: Path) -> None:
    output = run(EXAMPLES[0], tmp_path)
    assert re.fullmatch(r"0\.\d\d We chose Redis streams for the outbox: .*\n", output)


def test_the_kernel_example_resolves_the_engine(tmp_path: Path) -> None:
    code = EXAMPLES[1] + "\nprint(type(engine).__name__)\n"
    assert run(code, tmp_path) == "MemoryEngine\n"
