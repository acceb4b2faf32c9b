"""Random histories: named steps, whose arguments mean something in every state.

A key is chosen by a number that is taken modulo the keys there are, mostly the live ones; who acts
is a Volk, or ``None`` for the owner.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from orchestrata_memory.models import MemoryClassification

ROLES = {
    "ENG:ALPHA": ("team_lead",),
    "ENG:BETA": (),
    "ENG:GAMMA": (),
    "OPS:ADMIN": ("system_admin",),
}
STRANGER = "ENG:NOBODY"
VOLKS = (*ROLES, STRANGER)
SESSIONS = ("s", "s:1", "open")
CLOSING = SESSIONS[:2]
NAMES = ("index", "a:b", "it's")
TAGS = ("red", "tags", "ré:d")
CLASSES = (MemoryClassification.PRIVATE, *MemoryClassification)
BEGINNING = 5
"""Stores that a history begins with."""

Step = tuple[Any, ...]


class Author:
    """Writes one history for each seed.

    `KINDS` is weight and arguments of each kind of step.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def history(self, length: int) -> list[Step]:
        beginning = [self._step("store") for _ in range(BEGINNING)]
        names = self._random.choices(
            list(KINDS), [weight for weight, _ in KINDS.values()], k=length - BEGINNING
        )
        return [*beginning, *map(self._step, names)]

    def _step(self, name: str) -> Step:
        return (name, *(argument(self) for argument in KINDS[name][1]))

    # --- arguments -----------------------------------------------------------------------
    def volk(self) -> str:
        return self._random.choice([*ROLES] * 5 + [STRANGER])

    def actor(self) -> str | None:
        return self._random.choice([None] * 25 + [*VOLKS])

    def session(self) -> str:
        return self._random.choice(SESSIONS)

    def closing(self) -> str:
        return self._random.choice(CLOSING)

    def pick(self) -> int:
        return self._random.randrange(100)

    def few(self) -> int:
        return self._random.randint(1, 4)

    def many(self) -> int:
        return self._random.choice([1, 2, 4, 100, 100])

    def yes(self) -> bool:
        return self._random.random() < 0.5

    def name(self) -> str:
        return self._random.choice(NAMES)

    def content(self) -> int:
        return self._random.randrange(2)

    def tags(self) -> tuple[str, ...]:
        return tuple(self._random.sample(TAGS, self._random.choice([0, 1, 2])))

    def classification(self) -> MemoryClassification:
        return self._random.choice(CLASSES)

    def minutes(self) -> int:
        return self._random.choice([20, 45, 90])

    def place(self) -> str:
        return self._random.choice(["taken", "embedded", "applied"])

    def maybe(self, argument: Callable[[Author], Any]) -> Any:
        return argument(self) if self.yes() else None


def _maybe(argument: Callable[[Author], Any]) -> Callable[[Author], Any]:
    return lambda author: author.maybe(argument)


KINDS: dict[str, tuple[int, tuple[Callable[[Author], Any], ...]]] = {
    "store": (7, (Author.volk, Author.session, Author.classification, Author.tags)),
    "store_as": (5, (Author.volk, Author.session, Author.name, Author.content)),
    "update": (8, (Author.pick, Author.actor, _maybe(Author.tags), _maybe(Author.classification))),
    "delete": (4, (Author.pick, Author.actor)),
    "share": (6, (Author.pick, Author.actor, Author.volk)),
    "unshare": (2, (Author.pick, Author.actor, Author.volk)),
    "keep_summary": (3, (Author.volk, Author.session)),
    "delegate": (4, (Author.volk, Author.volk, _maybe(Author.minutes))),
    "revoke": (1, (Author.volk, Author.volk)),
    "advance": (1, (Author.minutes,)),
    "promote": (6, (Author.pick, Author.volk, Author.session)),
    "promote_late": (4, (Author.pick, Author.session)),
    "close": (2, (Author.closing, Author.yes)),
    "move_own": (3, (Author.volk, Author.session)),
    "work": (6, (Author.many,)),
    "die": (2, (Author.few, Author.place)),
    "bury": (3, (Author.few,)),
    "revive": (1, ()),
    "replay": (2, (Author.pick,)),
    "replay_write": (2, (Author.pick,)),
    "expire": (4, (Author.pick,)),
    "expire_all": (1, ()),
    "sweep": (1, ()),
    "upkeep": (1, ()),
    "look": (2, (Author.volk, Author.pick)),
    "find_some": (3, (Author.volk, Author.session, Author.tags, Author.few, Author.yes)),
}
