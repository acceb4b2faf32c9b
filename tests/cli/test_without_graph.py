"""With the graph away, writes say that they wait and searches that they are not complete."""

import pytest

from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.embedding.service import EmbeddingService
from orchestrata_memory.errors import MemoryEmbeddingError
from orchestrata_memory.retrieval.hot_source import HotSource
from tests.cli.conftest import commands_on

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def lonely(tmp_path_factory):
    """Runs commands with an embedded Redis and a graph that nobody listens for."""
    folder, volks = tmp_path_factory.mktemp("lonely"), {"USR:LOCAL": [], "ENG:BETA": []}
    nowhere = {"ORCHESTRATA_MEMORY__GRAPH__URI": "bolt://127.0.0.1:1"}
    with commands_on(folder, volks, **nowhere) as commands:
        yield commands


def test_what_is_written_says_that_it_waits(lonely):
    stored = lonely("store", "the ferry is late", "--json").json
    key = stored["entry"]["key"]
    shown = lonely("store", "the ferry is early")

    assert stored["waits_for_graph"] is True
    assert shown.code == ExitCode.OK
    assert "waits in the outbox" in " ".join(shown.out.split())
    for arguments in (
        ("update", key, "--content", "the ferry is full"),
        ("share", key, "ENG:BETA"),
        ("unshare", key, "ENG:BETA"),
        ("delegate", "ENG:BETA"),
        ("revoke", "ENG:BETA"),
        ("delete", key),
    ):
        assert lonely(*arguments, "--json").json["waits_for_graph"] is True


def test_a_search_says_what_did_not_answer(lonely):
    lonely("store", "the lighthouse is dark")

    found = lonely("search", "lighthouse", "--json")
    shown = lonely("search", "lighthouse")
    nothing = lonely("search", "submarine", "--min-similarity", "1", "--json")

    assert found.code == ExitCode.OK
    assert found.json["count"] == 1
    assert "graph" in found.json["degraded"]
    assert "which did not answer" in shown.out
    assert nothing.code == ExitCode.UNAVAILABLE
    assert nothing.json["results"] == []


@pytest.mark.parametrize(
    ("graph", "code"), [("away", ExitCode.UNAVAILABLE), ("there", ExitCode.CONFIGURATION)]
)
@pytest.mark.parametrize("arguments", [("search", "x", "--min-similarity", "1"), ("inject", "x")])
def test_a_model_that_does_not_work_is_no_server_that_is_away(
    lonely, monkeypatch, graph, code, arguments
):
    async def broken(self, text):
        raise MemoryEmbeddingError("no model here")

    async def all_here(self, scope):
        return graph == "there"

    monkeypatch.setattr(EmbeddingService, "embed_query", broken)
    monkeypatch.setattr(HotSource, "holds_all", all_here)

    found = lonely(*arguments, "--session", "of-nothing", "--json")
    shown = lonely(*arguments, "--session", "of-nothing")

    assert (found.code, shown.code) == (code, code)
    assert "embedding" in found.json["degraded"]
    assert "only by words" in " ".join(shown.out.split())


def test_an_ingest_does_not_say_that_the_graph_has_it(lonely, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("One paragraph about tides.")

    report = lonely("ingest", file, "--keys", "generated", "--json").json

    assert (report["stored"], report["settled"], report["waits_for_graph"]) == (1, False, True)
