"""No two names ever meet, whatever the ids, keys and tags are; Python and Lua agree."""

from __future__ import annotations

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrata_memory.hot import keys
from orchestrata_memory.hot.keys import LUA_NAMES, Name, NameKind

_HOSTILE = st.sampled_from(
    [
        *sorted(keys.RESERVED),
        "%69ndex",
        "%",
        "%25",
        ":",
        "a:b",
        "a:index",
        "*",
        "[a]",
        "?",
        "conv1",
        "conv10",
        "\u00e9",
        "e\u0301",
        "{x}",
        "a b",
        "'\"\\",
        "日本",
        "x" * 512,
        "é" * 256,
    ]
)
_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)
SEGMENTS = _HOSTILE | _TEXT


@given(SEGMENTS)
def test_decode_undoes_encode(segment: str) -> None:
    encoded = keys.encode(segment)
    assert keys.decode(encoded) == segment
    assert set(encoded) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%")
    assert encoded not in keys.RESERVED


@given(st.tuples(SEGMENTS, SEGMENTS, SEGMENTS), st.tuples(SEGMENTS, SEGMENTS, SEGMENTS))
def test_names_meet_only_when_everything_is_equal(
    one: tuple[str, str, str], two: tuple[str, str, str]
) -> None:
    assert (_every_name(*one) & _every_name(*two) != set()) == (_shared(one, two))
    assert len(_every_name(*one)) == 14, "different kinds never meet"


def _every_name(session: str, volk: str, key: str) -> set[str]:
    return {
        keys.entry(session, volk, key),
        keys.index(session, volk),
        keys.tagged(session, volk, key),
        keys.embedding(key),
        keys.embedding_index(session),
        keys.vector(key),
        keys.pointer(key),
        keys.copies(key),
        keys.replicas(session),
        keys.session(session),
        keys.summaries(key),
        keys.positions(session),
        keys.claim(key),
        keys.lock(session),
    }


def _shared(one: tuple[str, str, str], two: tuple[str, str, str]) -> bool:
    return one[0] == two[0] or one[2] == two[2]


@given(SEGMENTS, SEGMENTS, SEGMENTS)
def test_parse_undoes_the_making(session: str, volk: str, key: str) -> None:
    assert keys.parse(keys.entry(session, volk, key)) == Name(NameKind.ENTRY, (session, volk, key))
    assert keys.parse(keys.index(session, volk)) == Name(NameKind.INDEX, (session, volk))
    assert keys.parse(keys.tagged(session, volk, key)) == Name(NameKind.TAGS, (session, volk, key))
    assert keys.parse(keys.embedding(key)) == Name(NameKind.EMBEDDING, (key,))
    assert keys.parse(keys.embedding_index(key)) == Name(NameKind.EMBEDDING_INDEX, (key,))
    assert keys.parse(keys.pointer(key)) == Name(NameKind.POINTER, (key,))


@pytest.mark.parametrize(
    "name",
    [keys.AUDIT, keys.CENSUS, keys.CLOSED, keys.DEAD, keys.OUTBOX, keys.DELEGATIONS],
)
def test_single_names_stand_for_nothing_else(name: str) -> None:
    assert keys.parse(name).kind is NameKind.OTHER


def test_the_fixed_scheme() -> None:
    assert keys.entry("s", "ENG:ALPHA", "k") == "orchestrata:memory:s:ENG%3AALPHA:k"
    assert keys.index("s", "v") == "orchestrata:memory:s:v:index"
    assert keys.tagged("s", "v", "t") == "orchestrata:memory:s:v:tags:t"
    assert keys.embedding("k") == "orchestrata:memory:embed:k"
    assert keys.embedding_index("s") == "orchestrata:memory:embed:index:s"
    assert keys.encode("index") == "%69ndex"


@pytest.mark.servers
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(SEGMENTS, SEGMENTS, SEGMENTS)
def test_the_scripts_make_the_same_names(
    raw: redis.Redis, session: str, volk: str, key: str
) -> None:
    script = (
        LUA_NAMES
        + """
        local s, v, k = ARGV[1], ARGV[2], ARGV[3]
        return { name.entry(s, v, k), name.index(s, v), name.tagged(s, v, k), name.embedding(k),
          name.embedding_index(s), name.vector(k), name.pointer(k), name.copies(k),
          name.replicas(s), name.session(s), name.summaries(k), name.positions(s),
          name.claim(k), name.lock(s) }
        """
    )
    assert set(raw.eval(script, 0, session, volk, key)) == _every_name(session, volk, key)
