"""A data directory with embedded servers that the commands of a module share."""

import contextlib
import functools
import json

import pytest

from tests.cli.runner import run

VOLKS = {"USR:LOCAL": ["team_lead", "system_admin"], "ENG:BETA": [], "ENG:GAMMA": []}


@contextlib.contextmanager
def commands_on(folder, volks, **more):
    """Runs commands on servers of their own; vectors by hashing, which is quick."""
    env = {
        "ORCHESTRATA_MEMORY_DATA_DIR": str(folder),
        "ORCHESTRATA_MEMORY__EMBEDDED__LINGER_SECONDS": "120",
        "ORCHESTRATA_MEMORY__EMBEDDING__BACKEND": "hashing",
        "ORCHESTRATA_MEMORY__GOVERNANCE__VOLKS": json.dumps(volks),
        **more,
    }
    yield functools.partial(run, env=env)
    run("servers", "stop", "--force", env=env)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Commands of three Volks in a session of a project."""
    place = {"ORCHESTRATA_MEMORY_SESSION": "s-1", "ORCHESTRATA_MEMORY_PROJECT": "p-1"}
    with commands_on(tmp_path_factory.mktemp("memory"), VOLKS, **place) as commands:
        yield commands
