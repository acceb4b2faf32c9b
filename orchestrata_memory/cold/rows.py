"""Memories as properties of a node, and back.

Times are ISO 8601 in UTC with microseconds, so that their order as text is their order in time;
metadata is JSON text, tags and Volks are lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.cold.base import ColdDocument, ColdPut
from orchestrata_memory.hot.base import StoredVector
from orchestrata_memory.models import MemoryClassification, MemoryRecord

Properties = dict[str, Any]

_NEEDED = itemgetter(0, 1, 5, 6, 7, 11, 12, 14)
"""Values of key, content, classification, owner, session, both times and version."""

_UPDATED_AT, _VERSION = 12, 14

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def instant(value: datetime) -> str:
    """A time as stored; one without a zone counts as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")


def stream_of(session_id: str, volk_id: str) -> str:
    """Name of the stream of one owner in one session.

    Ids hold no control characters, so a newline keeps any two pairs apart.
    """
    return f"{session_id}\n{volk_id}"


def slot_of(session_id: str, volk_id: str, position: int) -> str:
    """Name of a place in a stream."""
    return f"{stream_of(session_id, volk_id)}\n{position}"


def properties_of(put: ColdPut) -> Properties:
    """Every property of the memory's node; those without a value are left out.

    Raises:
        ValueError: The metadata is no JSON.
    """
    record = put.record
    metadata = json.dumps(record.metadata, ensure_ascii=False, allow_nan=False)
    values: Properties = {
        "key": record.key,
        "content": record.content,
        "summary": record.summary,
        "tags": list(record.tags),
        "metadata": metadata,
        "classification": record.classification.value,
        "volk_id": record.volk_id,
        "session_id": record.session_id,
        "task_id": record.task_id,
        "project_id": record.project_id,
        "portfolio_id": record.portfolio_id,
        "created_at": instant(record.created_at),
        "updated_at": instant(record.updated_at),
        "token_count": record.token_count,
        "version": record.version,
        "shared_with": list(record.shared_with),
        "content_hash": record.content_hash,
        "replica": False,
        "position": record.position,
        "sources": list(record.sources),
        "source_versions": list(record.source_versions),
        "terms": put.terms,
        "term_count": len(put.terms.split()),
        "stream": stream_of(record.session_id, record.volk_id),
        "slot": slot_of(record.session_id, record.volk_id, record.position),
        "occurred_at": instant(record.occurred_at),
        "speaker": record.speaker,
        "speaker_key": record.speaker.casefold(),
        "relevance": record.relevance,
        "importance": record.importance,
    }
    return {name: value for name, value in values.items() if value is not None}


def vector_properties(vector: StoredVector, dimension: int) -> Properties:
    """The properties that hold a vector.

    Raises:
        ValueError: Another dimension, a value that is not finite, or all zeros.
    """
    properties: Properties = {
        "embedding": sound(vector.vector, dimension),
        "embedding_model": vector.model,
    }
    if vector.tokens is not None:
        properties["token_vectors"] = vector.tokens
    return properties


def state_of(values: Sequence[Any], model: str | None) -> list[Any]:
    """What ``fragment_found.cypher`` says of a memory besides its key."""
    return [values[_VERSION], values[_UPDATED_AT], model]


def is_whole(values: Sequence[Any]) -> bool:
    """Whether the values of ``fragment_record.cypher`` are of a memory that is there.

    Neo4j shows a node that is being deleted without some or all of its properties; another hand
    may have left one that never had them.
    """
    return None not in _NEEDED(values)


def records_from(rows: Iterable[Sequence[Any]]) -> list[MemoryRecord]:
    """The records of the rows that are whole; each row holds the values of one."""
    return [record_from(values) for (values,) in rows if is_whole(values)]


def record_from(values: Sequence[Any]) -> MemoryRecord:
    """The record from the values of ``fragment_record.cypher``.

    The store writes whole records only (see `is_whole`). What another hand spoilt is read as
    private, empty or of long ago, lest one node fail every search that meets it.
    """
    (
        key,
        content,
        summary,
        tags,
        metadata,
        classification,
        volk_id,
        session_id,
        task_id,
        project_id,
        portfolio_id,
        created_at,
        updated_at,
        token_count,
        version,
        shared_with,
        content_hash,
        position,
        sources,
        source_versions,
    ) = values
    return MemoryRecord(
        key=key,
        content=content,
        summary=summary,
        tags=tuple(tags or ()),
        metadata=_metadata(metadata),
        classification=_classification(classification),
        volk_id=volk_id,
        session_id=session_id,
        task_id=task_id,
        project_id=project_id,
        portfolio_id=portfolio_id,
        created_at=_time(created_at),
        updated_at=_time(updated_at),
        token_count=token_count or 0,
        version=version,
        shared_with=tuple(shared_with or ()),
        content_hash=content_hash or "",
        position=position or 0,
        sources=tuple(sources or ()),
        source_versions=tuple(source_versions or ()),
    )


def document_from(row: Sequence[Any], dimension: int) -> ColdDocument:
    """A document from a row of ``documents_by_key.cypher``; an unsound vector counts as none."""
    values, terms, embedding, tokens, model = row
    vector = vector_from(embedding, dimension)
    return ColdDocument.of(
        record_from(values),
        (terms or "").split(),
        vector=None if vector is None else _unit(vector),
        tokens=bytes(tokens) if tokens is not None else None,
        model=model,
    )


def vector_from(values: Sequence[float] | None, dimension: int) -> NDArray[np.float32] | None:
    """A stored vector as an array; None for one that cannot be compared."""
    if values is None or len(values) != dimension:
        return None
    vector = np.asarray(values, dtype=np.float32)
    return vector if _is_comparable(vector) else None


def sound(vector: NDArray[np.float32], dimension: int) -> list[float]:
    """A vector as a parameter.

    Raises:
        ValueError: Another dimension, a value that is not finite, or all zeros.
    """
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimension,):
        raise ValueError(f"its vector has the shape {values.shape}, the graph holds ({dimension},)")
    if not _is_comparable(values):
        raise ValueError("its vector is all zeros or not finite")
    listed: list[float] = values.tolist()
    return listed


def _is_comparable(vector: NDArray[np.float32]) -> bool:
    return bool(np.isfinite(vector).all() and vector.any())


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(vector.astype(np.float64))
    return (vector / length).astype(np.float32)


def relationships_of(record: MemoryRecord) -> Mapping[str, Sequence[str]]:
    """Ids of the nodes a memory is linked to, by relationship type."""
    return {
        "BELONGS_TO": (record.session_id,),
        "CREATED_BY": (record.volk_id,),
        "RELATES_TO": (record.task_id,) if record.task_id is not None else (),
        "PART_OF": (record.project_id,) if record.project_id is not None else (),
        "SHARED_WITH": record.shared_with,
        "DERIVED_FROM": record.sources,
    }


def _metadata(text: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever stands there
    try:
        value = json.loads(text) if text else {}
    except (ValueError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}


def _classification(value: Any) -> MemoryClassification:  # noqa: ANN401 - as above
    try:
        return MemoryClassification(value)
    except ValueError:
        return MemoryClassification.PRIVATE


def _time(value: Any) -> datetime:  # noqa: ANN401 - as above
    try:
        time = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return _LONG_AGO
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
