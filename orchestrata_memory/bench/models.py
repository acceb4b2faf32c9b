"""Which models answer, in the words of the parts."""

from __future__ import annotations

from orchestrata_memory.embedding.base import Embedder


async def models_in_use(embedder: Embedder) -> dict[str, object]:
    """The model, and what computes the vectors of documents and of queries."""
    details = (await embedder.health()).details
    names = ("model", "dimension", "document_backend", "query_backend", "query_agreement")
    return {name: details[name] for name in names if name in details}
