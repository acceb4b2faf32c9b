"""Sources for the tests of summaries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from orchestrata_memory.embedding.hashing import HashingModel
from orchestrata_memory.models import MemoryRecord
from orchestrata_memory.summaries.sources import SourceMemory
from orchestrata_memory.tokens.anthropic import AnthropicCounter
from orchestrata_memory.tokens.tiktoken import TiktokenCounter
from orchestrata_memory.tokens.words import WordCounter

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
COUNTERS = [WordCounter(), TiktokenCounter(), AnthropicCounter()]
_MODEL = HashingModel(64)


def vector_of(text: str) -> np.ndarray:
    return _MODEL.encode([text], with_tokens=False)[0].vector


def source(
    content: str,
    *,
    key: str | None = None,
    days_ago: float = 0,
    relevance: float | None = None,
    with_vector: bool = True,
    **metadata: object,
) -> SourceMemory:
    at = NOW - timedelta(days=days_ago)
    record = MemoryRecord(
        key=key or content[:40],
        content=content,
        volk_id="ENG:ALPHA",
        session_id="s",
        created_at=at,
        updated_at=at,
        content_hash="",
        metadata=metadata,
    )
    vector = vector_of(content) if with_vector and content.strip() else None
    return SourceMemory(record=record, vector=vector, relevance=relevance)
