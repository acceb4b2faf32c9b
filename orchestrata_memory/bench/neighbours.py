"""A tier's own vector look-up, compared with an exact scan of the vectors it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrata_memory.bench.metrics import mean
from orchestrata_memory.bench.tiers import Tier
from orchestrata_memory.cold.base import ColdQuery, FindOrder
from orchestrata_memory.ingest.writers import chunks
from orchestrata_memory.models import MemoryScope

if TYPE_CHECKING:
    from orchestrata_memory.engine.engine import MemoryEngine

K = 10
_BATCH = 500
_PAGE = 10_000
_MARGIN = 1e-6

Vectors = tuple[list[str], NDArray[np.float32]]


async def vector_recall(
    engine: MemoryEngine,
    tier: Tier,
    keys: Sequence[str],
    queries: Sequence[str],
    scope: MemoryScope,
) -> float:
    """Mean recall at 10 of the tier's vector look-up within a scope.

    Args:
        engine: Holds the memories.
        tier: Which tier's look-up and vectors.
        keys: All memories that may be in the scope.
        queries: Texts whose neighbours are looked up.
        scope: Filters of the look-up and of the exact scan alike.
    """
    held = await _held(engine, tier, keys, scope)
    recalls = []
    for query in queries:
        vector = (await engine.parts.embedder.embed_query(query)).vector
        found = await _looked_up(engine, tier, vector, scope)
        recalls.append(recall_of(found, held, vector))
    return mean(recalls)


def recall_of(found: Sequence[str], held: Vectors, query: NDArray[np.float32]) -> float:
    """Recall at 10 of what was found; a memory as near as the tenth counts as one of the ten."""
    keys, matrix = held
    if not keys:
        return 1.0
    scores = dict(zip(keys, (matrix @ query).tolist(), strict=True))
    best = sorted(scores.values(), reverse=True)[:K]
    as_good = [key for key in found[:K] if scores.get(key, -1.0) >= best[-1] - _MARGIN]
    return min(len(as_good), len(best)) / len(best)


async def _looked_up(
    engine: MemoryEngine, tier: Tier, vector: NDArray[np.float32], scope: MemoryScope
) -> list[str]:
    """The ten nearest by the tier's own look-up."""
    near: list[tuple[float, str]]
    if tier == "hot":
        hot = await engine.parts.index.candidates((), vector, scope, None, K)
        near = [(hot.found.cosines.get(key, -1.0), key) for key in hot.found.passages]
    else:
        query = ColdQuery(terms=(), vector=vector, scope=scope, readable=None, count=K)
        cold = await engine.parts.cold.candidates(query)
        near = [(-1.0 if hit.cosine is None else hit.cosine, hit.record.key) for hit in cold.hits]
    return [key for _, key in sorted(near, reverse=True)[:K]]


async def _held(
    engine: MemoryEngine, tier: Tier, keys: Sequence[str], scope: MemoryScope
) -> Vectors:
    """Keys and vectors that the tier holds in the scope."""
    names: list[str] = []
    rows: list[NDArray[np.float32]] = []
    inside = await _inside(engine, tier, scope)
    for batch in chunks([key for key in keys if key in inside], _BATCH):
        for key, vector in (await _vectors(engine, tier, batch)).items():
            names.append(key)
            rows.append(vector)
    width = engine.parts.embedder.dimension
    return names, np.stack(rows) if rows else np.zeros((0, width), dtype=np.float32)


async def _inside(engine: MemoryEngine, tier: Tier, scope: MemoryScope) -> set[str]:
    """Keys of the scope in the tier."""
    if tier == "hot":
        found = engine.parts.index.find(
            scope,
            tags=(),
            match_all=True,
            readable=None,
            order=FindOrder.OLDEST,
            include_summaries=True,
        )
        return {record.key for record in found}
    inside: set[str] = set()
    while True:
        page = await engine.parts.cold.find(
            scope, readable=None, limit=_PAGE, offset=len(inside), include_summaries=True
        )
        inside.update(record.key for record in page)
        if len(page) < _PAGE:
            return inside


async def _vectors(
    engine: MemoryEngine, tier: Tier, keys: Sequence[str]
) -> dict[str, NDArray[np.float32]]:
    if tier == "cold":
        stored = await engine.parts.cold.vectors(keys)
        return {key: item.vector for key, item in stored.items()}
    found = {key: engine.parts.index.vector(key) for key in keys}
    return {key: vector for key, vector in found.items() if vector is not None}
