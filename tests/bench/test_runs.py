"""Each bench on a tiny data set: it measures what it says and leaves nothing behind."""

import json

import pytest

from orchestrata_memory.bench.ablation import run_ablation
from orchestrata_memory.bench.corpus import GROUP_SIZE
from orchestrata_memory.bench.intents import IntentSet, Labelled, run_intents
from orchestrata_memory.bench.latency import Sizes, run_latency
from orchestrata_memory.bench.locomo import run_locomo
from orchestrata_memory.bench.locomo_data import read_conversations
from orchestrata_memory.bench.scale import run_scale
from orchestrata_memory.ingest.progress import Silent
from orchestrata_memory.models import MemoryScope, memory_context
from orchestrata_memory.retrieval.weights import Ingredients

pytestmark = pytest.mark.servers

TINY = Sizes(samples=10, hot_entries=40, cold_entries=80, summary_entries=20)


class Stages(Silent):
    """Remembers the stages."""

    def __init__(self):
        self.totals = {}

    def stage(self, name, total):
        self.totals[name] = self.totals.get(name, 0) + total
        return super().stage(name, total)


async def left_behind(place):
    with memory_context(place.caller("inspector")):
        return await place.engine.find(scope=MemoryScope(), limit=10)


@pytest.mark.traces("REQ-010-051", "REQ-010-052", "REQ-010-054")
async def test_latency_measures_every_row_on_the_given_servers(bench_environment, clean_graph):
    stages = Stages()
    async with bench_environment() as place:
        report = await run_latency(place, TINY, stages)
        document = json.loads(json.dumps(report.document()))
        left = await left_behind(place)

    for row in (
        *("hot_store", "hot_store_explicit_key", "hot_retrieve", "hot_search"),
        *("cold_retrieve", "cold_search", "summarize"),
        *("redis_roundtrip", "redis_write", "graph_roundtrip"),
    ):
        assert document[f"{row}_samples"] == TINY.samples
        fifty, ninety_five, ninety_nine = (document[f"{row}_p{n}_ms"] for n in (50, 95, 99))
        assert 0 < fifty <= ninety_five <= ninety_nine
    assert document["stores_per_s"] > 0
    assert document["sustained_stores"] == TINY.cold_entries
    assert "Redis" in document["backend"] or "Valkey" in document["backend"]
    assert ("ArcadeDB" in document["backend"]) == (clean_graph.dialect == "arcadedb")
    assert left == []
    assert stages.totals["hot search"] == TINY.samples


@pytest.fixture
def conversations(tmp_path):
    colours = ["red", "green", "blue", "amber", "violet", "white"]
    turns = [
        {
            "dia_id": f"D1:{n}",
            "speaker": "Ana",
            "text": f"My {colour} boat won the race in lane {n}",
        }
        for n, colour in enumerate(colours, start=1)
    ]
    asked = [
        {"question": f"Which lane did the {colour} boat win in?", "evidence": [f"D1:{n}"]}
        | {"category": 1 + n % 4}
        for n, colour in enumerate(colours, start=1)
    ]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps([{"sample_id": "c", "conversation": talk, "qa": asked}]))
    return read_conversations(file, limit_bytes=65_536)


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_locomo_asks_the_tier_it_was_told_to(bench_environment, conversations, tier):
    async with bench_environment(promote=False) as place:
        report = await run_locomo(place, conversations, Silent(), tier=tier, every=2)
        document = report.document()
        left = await left_behind(place)

    assert document["tier"] == tier
    assert document["n"] == 3
    assert document["memories"] == 6
    assert document["any_at_10"] == 1
    assert document["fraction_at_10"] == 1
    assert document["query_p95_ms"] >= document["query_p50_ms"] > 0
    assert left == []


async def test_an_ablation_asks_once_for_each_ingredient(bench_environment, conversations):
    stages = Stages()
    unrelated = IntentSet(
        stored=tuple(Labelled(text=f"{word} the lamp", intent=word) for word in ("dim", "sell")),
        asked=(Labelled(text="please dim it", intent="dim"),),
    )
    async with bench_environment(promote=False) as place:
        report = await run_ablation(place, conversations, stages, intents=unrelated, every=2)
        document = json.loads(json.dumps(report.document()))
        left = await left_behind(place)

    names = [row["without"] for row in document["rows"]]
    assert names == ["everything", *Ingredients.names()]
    assert {row["n"] for row in document["rows"]} == {3}
    assert document["any_at_10"] == 1
    assert document["precision_at_10"] == 0.1
    assert stages.totals["searching"] == 3 * (1 + len(names)) + len(names)
    assert left == []


async def test_a_cold_run_leaves_nothing_in_redis_to_find(bench_environment, conversations):
    async with bench_environment(promote=False) as place:
        await run_locomo(place, conversations, Silent(), tier="cold", keep=True)
        kept = await left_behind(place)
        hashes = [name async for name in place.raw.redis.scan_iter(_type="hash")]

    entries = [name for name in hashes if name.startswith(b"orchestrata:memory:locomo")]
    assert len(kept) == 6
    assert entries == []


async def test_intents_are_compared_with_an_exact_cosine(bench_environment):
    stored = tuple(
        Labelled(text=f"{verb} the {noun} number {number} please", intent=f"{verb} {noun}")
        for verb in ("open", "close")
        for noun in ("door", "window")
        for number in range(10)
    )
    asked = (
        Labelled(text="open the door please", intent="open door"),
        Labelled(text="close the window please", intent="close window"),
    )
    async with bench_environment(promote=False) as place:
        report = await run_intents(place, IntentSet(stored=stored, asked=asked), Silent())
        document = report.document()
        left = await left_behind(place)

    assert document["n"] == 2
    assert document["memories"] == 40
    assert document["precision_at_10"] == 1
    assert document["exact_precision_at_10"] == 1
    assert left == []


@pytest.mark.parametrize("tier", ["hot", "cold"])
async def test_scale_grows_and_finds_the_known_neighbours(bench_environment, tier):
    sizes = [4 * GROUP_SIZE, 12 * GROUP_SIZE]
    async with bench_environment(promote=False) as place:
        report = await run_scale(place, sizes, Silent(), tier=tier, queries=6)
        document = report.document()
        left = await left_behind(place)

    assert [step["n"] for step in document["steps"]] == sizes
    assert document["n"] == sizes[-1]
    # hashes are alike for other reasons than meaning, and what is very alike is trusted
    assert document["recall_at_10"] >= 0.8
    assert document["vector_recall_at_10"] >= 0.95
    assert document["scoped_vector_recall_at_10"] >= 0.95
    assert document["redis_mib"] > 0
    assert document["process_mib"] > 0
    assert left == []
