"""The long form: ``python -m tests.crash.run --rounds 50 --seed 7``; see ``make crash``."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.crash.harness import LEAST_ACKS, Harness, Round, Target
from tests.servers.pool import ServerPool


def main() -> int:
    """Play the rounds on both graphs, print the table; 1 when a rule broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25, help="rounds on each graph")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--graph", choices=["arcadedb", "neo4j"], action="append")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    console = Console()
    console.print(f"seed {seed}")
    good = True
    for kind in options.graph or ["arcadedb", "neo4j"]:
        with tempfile.TemporaryDirectory() as folder:
            pool = ServerPool(Path(folder))
            try:
                harness = Harness(pool.redis(), pool.graph(kind), Path(folder), seed)
                rounds = _play(harness, options.rounds, console)
            finally:
                pool.stop()
        console.print(_table(kind, rounds))
        good = good and _verdict(rounds, console)
    return 0 if good else 1


def _play(harness: Harness, rounds: int, console: Console) -> list[Round]:
    played = []
    for number, target in enumerate(harness.plan(rounds), 1):
        one = harness.play_one(target)
        played.append(one)
        console.print(
            f"{number}/{rounds} {target}: {one.acks} acknowledged, "
            f"recovered in {one.recovery_seconds:.1f} s"
            + (f" [red]{one.findings}[/red]" if one.findings.any else "")
        )
    return played


def _table(kind: str, rounds: list[Round]) -> Table:
    table = Table(title=f"Killed while writing, on {kind}")
    columns = ("killed", "rounds", "acknowledged", "lost", "doubled", "resurrected", "dangling")
    for column in (*columns, "s to recover (max)"):
        table.add_column(column, justify="left" if column == "killed" else "right")
    by_target: dict[Target, list[Round]] = defaultdict(list)
    for one in rounds:
        by_target[one.target].append(one)
    for target, of_target in by_target.items():
        found = [one.findings for one in of_target]
        table.add_row(
            target,
            str(len(of_target)),
            str(sum(one.acks for one in of_target)),
            str(sum(len(one.lost) for one in found)),
            str(sum(len(one.doubled) for one in found)),
            str(sum(len(one.resurrected) for one in found)),
            str(sum(len(one.dangling) for one in found)),
            f"{max(one.recovery_seconds for one in of_target):.1f}",
        )
    return table


def _verdict(rounds: list[Round], console: Console) -> bool:
    problems = []
    if any(one.findings.any for one in rounds):
        problems.append("a rule was broken")
    if any(one.acks < LEAST_ACKS for one in rounds):
        problems.append(f"a round had fewer than {LEAST_ACKS} acknowledgements")
    if not any(one.in_batch for one in rounds):
        problems.append("no kill fell inside a batch")
    for problem in problems:
        console.print(f"[red]FAILED: {problem}[/red]")
    return not problems


if __name__ == "__main__":
    sys.exit(main())
