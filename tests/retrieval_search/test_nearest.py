"""Nearest neighbours: exact where it is fast, approximate and nearly exact beyond."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrata_memory.retrieval.hot_index_vectors import VectorMatrix

COUNT, DIMENSION, QUERIES = 10_000, 384, 100


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    """Loose clusters, as texts form them."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(300, DIMENSION))
    noise = rng.normal(size=(COUNT, DIMENSION))
    return unit((0.6 * centres[rng.integers(0, 300, COUNT)] + noise).astype(np.float32))


@pytest.fixture(scope="module")
def queries(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    rng = np.random.default_rng(8)
    chosen = vectors[rng.integers(0, COUNT, QUERIES)]
    return unit((chosen + 0.03 * rng.normal(size=chosen.shape)).astype(np.float32))


@pytest.fixture(scope="module")
async def approximate(vectors: NDArray[np.float32]) -> AsyncIterator[VectorMatrix]:
    matrix = VectorMatrix(DIMENSION, exact_rows=100)
    for row, vector in enumerate(vectors):
        matrix.set(row, vector)
    matrix.keep_up()
    await matrix.settle()
    yield matrix
    await matrix.close()


async def recall(
    matrix: VectorMatrix, rows: NDArray[np.int32], queries: NDArray[np.float32]
) -> float:
    """Share of the ten nearest by numpy that come back."""
    hits = 0
    for query in queries:
        found = await matrix.nearest(rows, query, 10)
        true = rows[np.argsort(-(matrix._matrix[rows] @ query), kind="stable")[:10]]
        assert set(found.tolist()) <= set(rows.tolist())
        hits += len(set(found.tolist()) & set(true.tolist()))
    return hits / (10 * len(queries))


@pytest.mark.traces("REQ-010-040")
async def test_recall_at_ten_over_ten_thousand(
    approximate: VectorMatrix, queries: NDArray[np.float32]
):
    assert approximate._approximate is not None
    assert approximate._approximate.size == COUNT
    rows = np.arange(COUNT, dtype=np.int32)
    assert await recall(approximate, rows, queries) >= 0.95


@pytest.mark.parametrize("share", [2, 10, 50])
@pytest.mark.traces("REQ-010-040")
async def test_recall_with_a_filter(
    approximate: VectorMatrix, queries: NDArray[np.float32], share: int
):
    rows = np.arange(0, COUNT, share, dtype=np.int32)
    assert await recall(approximate, rows, queries[:40]) >= 0.95


@pytest.mark.traces("REQ-010-039", "REQ-010-040")
async def test_the_exact_scan_agrees_with_numpy(
    vectors: NDArray[np.float32], queries: NDArray[np.float32]
):
    matrix = VectorMatrix(DIMENSION)
    for row, vector in enumerate(vectors):
        matrix.set(row, vector)
    for rows in (np.arange(COUNT, dtype=np.int32), np.arange(5, COUNT, 7, dtype=np.int32)):
        assert await recall(matrix, rows, queries[:20]) == 1.0
        found = await matrix.nearest(rows, queries[0], 5)
        cosines = matrix.cosines(found, queries[0])
        assert cosines == pytest.approx(vectors[found] @ queries[0], abs=1e-6)
        assert list(cosines) == sorted(cosines, reverse=True)


async def test_changed_and_removed_rows_are_never_answered_from_the_old_graph():
    rng = np.random.default_rng(3)
    vectors = unit(rng.normal(size=(600, 16)).astype(np.float32))
    matrix = VectorMatrix(16, exact_rows=50)
    for row, vector in enumerate(vectors):
        matrix.set(row, vector)
    matrix.keep_up()
    await matrix.settle()
    target = vectors[0]
    matrix.clear(0)
    matrix.set(1, target)
    matrix.set(2, -target)
    rows = matrix.with_vectors(np.arange(600, dtype=np.int32))
    found = (await matrix.nearest(rows, target, 3)).tolist()
    assert found[0] == 1
    assert 0 not in found
    assert 2 not in found
    matrix.keep_up()
    await matrix.settle()
    assert (await matrix.nearest(rows, target, 1)).tolist() == [1]
    await matrix.close()


async def test_closing_stops_the_indexing():
    matrix = VectorMatrix(16, exact_rows=10)
    for row, vector in enumerate(unit(np.random.default_rng(1).normal(size=(5_000, 16)))):
        matrix.set(row, vector)
    matrix.keep_up()
    await asyncio.sleep(0)
    await matrix.close()
    assert matrix._indexing is None
