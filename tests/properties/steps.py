"""Random histories: lists of named steps, whose arguments mean something in every state.

A key is chosen by a number that is taken modulo the keys there are; who acts is a Volk or ``None``
for the owner.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from orchestrata_memory.models import MemoryClassification

ROLES = {
    "ENG:ALPHA": ("team_lead",),
    "ENG:BETA": (),
    "ENG:GAMMA": (),
    "OPS:ADMIN": ("system_admin",),
}
STRANGER = "ENG:NOBODY"
VOLKS = (*ROLES, STRANGER)
SESSIONS = ("s", "s:1")
NAMES = ("index", "a:b", "it's")
TAGS = ("red", "tags", "ré:d")

Step = tuple[Any, ...]

_volk = st.sampled_from([*ROLES] * 5 + [STRANGER])
_actor = st.one_of(*[st.none()] * 4, st.sampled_from(VOLKS))
_session = st.sampled_from(SESSIONS)
_pick = st.integers(0, 20)
_class = st.sampled_from([MemoryClassification.PRIVATE, *MemoryClassification])
_tags = st.lists(st.sampled_from(TAGS), unique=True, max_size=2).map(tuple)
_minutes = st.sampled_from([20, 45, 90])
_yes = st.booleans()


def _step(name: str, *arguments: st.SearchStrategy[Any], weight: int = 1) -> list[Any]:
    return [st.tuples(st.just(name), *arguments)] * weight


STEP = st.one_of(
    *_step("store", _volk, _session, _class, _tags, weight=4),
    *_step("store_as", _volk, _session, st.sampled_from(NAMES), st.integers(0, 1), weight=3),
    *_step("update", _pick, _actor, st.none() | _tags, st.none() | _class, weight=3),
    *_step("delete", _pick, _actor, weight=2),
    *_step("share", _pick, _actor, _volk, weight=3),
    *_step("unshare", _pick, _actor, _volk),
    *_step("delegate", _volk, _volk, st.none() | _minutes, weight=2),
    *_step("revoke", _volk, _volk),
    *_step("keep_summary", _volk, _session),
    *_step("advance", _minutes),
    *_step("promote", _pick, _volk, _session, weight=2),
    *_step("close", _session, _yes),
    *_step("move_own", _volk, _session),
    *_step("work", st.integers(1, 4), weight=3),
    *_step("work", st.just(100), weight=2),
    *_step("die", st.integers(1, 4), st.sampled_from(["taken", "embedded", "applied"])),
    *_step("bury", st.integers(1, 2)),
    *_step("revive"),
    *_step("replay", _pick, weight=2),
    *_step("replay_write", _pick),
    *_step("expire", st.integers(0, 100), weight=2),
    *_step("expire_all"),
    *_step("sweep"),
    *_step("upkeep"),
    *_step("look", _volk, _pick, weight=2),
    *_step("find_some", _volk, _session, _tags, st.integers(1, 3), _yes, weight=2),
)
HISTORY = st.lists(STEP, min_size=15, max_size=40)
