"""Names of everything the hot tier keeps in Redis. No other module makes one.

A name is ``orchestrata:memory:`` and segments joined by colons. Ids, keys and tags become one
segment each: every byte of their UTF-8 but ``A-Za-z0-9._-`` is percent-encoded, without Unicode
normalisation, so encoding is injective and a colon always separates. A segment that equals a word
of the scheme gets its first letter encoded too, so it never stands where the scheme's own word
does. (A raw ``%`` is itself encoded; hence no other value can yield that spelling.)

The names, ``{…}`` being encoded segments:

===================================  ======  =====================================================
``{session}:{volk}:{key}``           hash    an entry, or a replica under the reader's session
``{session}:{volk}:index``           zset    keys by created_at
``{session}:{volk}:tags:{tag}``      set     keys with the tag
``embed:{key}``                      string  the vector as a JSON array
``embed:index:{session}``            zset    embedded keys by relevance of their latest match
``embed:cache:{model}:{digest}``     string  a text's encoding, by SHA-256 of the text
``vector:{key}``                     hash    version, model, raw float32 vector, token vectors
``ptr:{key}``                        hash    the pointer: what hot knows of a key
``copies:{key}``                     set     sessions that hold a replica
``replicas:{session}``               hash    key to owner of the replicas held for a session
``session:{session}``                set     keys whose home is the session and that hot holds
``summaries:{key}``                  set     stored summaries made from the key
``positions:{session}``              hash    Volk to the last position given in its stream
``claim:{key}``, ``lock:{session}``  string  token of the holder, with a TTL
``closed``                           zset    closed sessions by time
``census``, ``unseeded``             hash    see `census`
``delegations``                      hash    one field for each pair
``outbox``, ``dead``                 stream  to be written behind; what kept failing
``audit``, ``changes``               stream  audit trail; change log (and the channel's name)
===================================  ======  =====================================================

The scripts make the same names by `LUA_NAMES`, which is written from the same constants; a test
compares the two for hostile input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "orchestrata:memory:"

RESERVED = frozenset(
    {
        "audit",
        "census",
        "changes",
        "claim",
        "closed",
        "copies",
        "dead",
        "delegations",
        "embed",
        "index",
        "lock",
        "outbox",
        "positions",
        "ptr",
        "replicas",
        "session",
        "summaries",
        "tags",
        "unseeded",
        "vector",
    }
)
"""Words of the scheme; a segment that equals one is encoded further."""

AUDIT = PREFIX + "audit"
CENSUS = PREFIX + "census"
CHANGES = PREFIX + "changes"
CHANNEL = PREFIX + "changes"
CLOSED = PREFIX + "closed"
DEAD = PREFIX + "dead"
DELEGATIONS = PREFIX + "delegations"
OUTBOX = PREFIX + "outbox"
PROBE = PREFIX + "probe"
UNSEEDED = PREFIX + "unseeded"

POINTER_PATTERN = PREFIX + "ptr:*"
EVERY_PATTERN = PREFIX + "*"

_OTHER = re.compile(rb"[^A-Za-z0-9._-]")
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")


def _escape(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def encode(segment: str) -> str:
    """One segment of a name for an id, key or tag."""
    if segment in RESERVED:
        return f"%{ord(segment[0]):02X}{segment[1:]}"
    return _OTHER.sub(_escape, segment.encode()).decode("ascii")


def decode(segment: str) -> str:
    """The id, key or tag that `encode` made `segment` from."""
    raw = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), segment.encode("ascii"))
    return raw.decode()


def entry(session_id: str, volk_id: str, key: str) -> str:
    """Hash of an entry (at home) or of a replica (under the reader's session).

    Traces: REQ-010-025
    """
    return f"{PREFIX}{encode(session_id)}:{encode(volk_id)}:{encode(key)}"


def index(session_id: str, volk_id: str) -> str:
    """Sorted set of a Volk's keys in a session."""
    return f"{PREFIX}{encode(session_id)}:{encode(volk_id)}:index"


def tagged(session_id: str, volk_id: str, tag: str) -> str:
    """Set of a Volk's keys in a session that have a tag."""
    return f"{PREFIX}{encode(session_id)}:{encode(volk_id)}:tags:{encode(tag)}"


def embedding(key: str) -> str:
    """The vector as JSON."""
    return f"{PREFIX}embed:{encode(key)}"


def embedding_index(session_id: str) -> str:
    """The session's embedded keys."""
    return f"{PREFIX}embed:index:{encode(session_id)}"


def embedding_cache(model: str, digest: str) -> str:
    """The encoding of a text by a model; `digest` is the hex SHA-256 of the text."""
    return f"{PREFIX}embed:cache:{encode(model)}:{digest}"


def vector(key: str) -> str:
    """The vectors as they are computed with."""
    return f"{PREFIX}vector:{encode(key)}"


def pointer(key: str) -> str:
    """What hot knows of a key."""
    return f"{PREFIX}ptr:{encode(key)}"


def copies(key: str) -> str:
    """Sessions that hold a replica of the key."""
    return f"{PREFIX}copies:{encode(key)}"


def replicas(session_id: str) -> str:
    """Replicas held for a session."""
    return f"{PREFIX}replicas:{encode(session_id)}"


def session(session_id: str) -> str:
    """Keys that hot holds whose home is the session."""
    return f"{PREFIX}session:{encode(session_id)}"


def summaries(key: str) -> str:
    """Stored summaries made from the key."""
    return f"{PREFIX}summaries:{encode(key)}"


def positions(session_id: str) -> str:
    """Last positions given in the session's streams."""
    return f"{PREFIX}positions:{encode(session_id)}"


def claim(key: str) -> str:
    """Token of who claims an explicit key."""
    return f"{PREFIX}claim:{encode(key)}"


def lock(session_id: str) -> str:
    """Token of who migrates the session."""
    return f"{PREFIX}lock:{encode(session_id)}"


def delegation_field(delegator: str, delegate: str) -> str:
    """Field of a pair in the hash of delegations."""
    return f"{encode(delegator)}:{encode(delegate)}"


class NameKind(StrEnum):
    """What a name stands for, as far as upkeep cares."""

    ENTRY = "entry"
    INDEX = "index"
    TAGS = "tags"
    EMBEDDING = "embed"
    EMBEDDING_INDEX = "embed:index"
    VECTOR = "vector"
    POINTER = "ptr"
    COPIES = "copies"
    REPLICAS = "replicas"
    SESSION = "session"
    SUMMARIES = "summaries"
    POSITIONS = "positions"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Name:
    """A name taken apart: its kind and the decoded segments that vary."""

    kind: NameKind
    parts: tuple[str, ...] = ()


_BY_KEY = {
    str(kind): kind
    for kind in (
        NameKind.EMBEDDING,
        NameKind.VECTOR,
        NameKind.POINTER,
        NameKind.COPIES,
        NameKind.REPLICAS,
        NameKind.SESSION,
        NameKind.SUMMARIES,
        NameKind.POSITIONS,
    )
}


def parse(name: str) -> Name:
    """Take apart a name that this module made; a foreign one is ``OTHER``."""
    segments = name.removeprefix(PREFIX).split(":")
    match segments:
        case ["embed", "index", session_id]:
            return Name(NameKind.EMBEDDING_INDEX, (decode(session_id),))
        case [word, key] if word in _BY_KEY:
            return Name(_BY_KEY[word], (decode(key),))
        case [session_id, volk_id, "index"]:
            return Name(NameKind.INDEX, (decode(session_id), decode(volk_id)))
        case [session_id, volk_id, "tags", tag]:
            return Name(NameKind.TAGS, (decode(session_id), decode(volk_id), decode(tag)))
        case [session_id, volk_id, key] if session_id not in RESERVED:
            return Name(NameKind.ENTRY, (decode(session_id), decode(volk_id), decode(key)))
        case _:
            return Name(NameKind.OTHER)


def _lua_names() -> str:
    words = ", ".join(f"['{word}'] = true" for word in sorted(RESERVED))
    by_key = "\n".join(
        f"function name.{function}(id) return PREFIX .. '{word}:' .. encode(id) end"
        for function, word in (
            ("embedding", "embed"),
            ("embedding_index", "embed:index"),
            ("vector", "vector"),
            ("pointer", "ptr"),
            ("copies", "copies"),
            ("replicas", "replicas"),
            ("session", "session"),
            ("summaries", "summaries"),
            ("positions", "positions"),
            ("claim", "claim"),
            ("lock", "lock"),
        )
    )
    single = "\n".join(
        f"name.{word} = PREFIX .. '{word}'"
        for word in (
            "audit",
            "census",
            "changes",
            "closed",
            "dead",
            "delegations",
            "outbox",
            "unseeded",
        )
    )
    return f"""
local PREFIX = '{PREFIX}'
local RESERVED = {{ {words} }}
local function escape(c) return string.format('%%%02X', string.byte(c)) end
local function encode(segment)
  if RESERVED[segment] then return escape(segment) .. string.sub(segment, 2) end
  return (string.gsub(segment, '[^A-Za-z0-9._%-]', escape))
end
local name = {{}}
{single}
{by_key}
local function stream_of(session, volk)
  return PREFIX .. encode(session) .. ':' .. encode(volk) .. ':'
end
function name.entry(session, volk, key) return stream_of(session, volk) .. encode(key) end
function name.index(session, volk) return stream_of(session, volk) .. 'index' end
function name.tagged(session, volk, tag)
  return stream_of(session, volk) .. 'tags:' .. encode(tag)
end
"""


LUA_NAMES = _lua_names()
"""The same names for the scripts; put in front of each."""
