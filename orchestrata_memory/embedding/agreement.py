"""Whether two backends of one model give the same vectors."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrata_memory.embedding.base import Encoding

REQUIRED_COSINE = 0.999
"""Least cosine over the probe sentences from which a backend may stand in for another."""

PROBES = (
    "Which database did we choose for the audit trail, and why?",
    "When did Caroline move to the new apartment?",
    "The build failed because the certificate of the package mirror had expired last night.",
    "What does error E1042 in parse_config.py mean?",
    "Melanie painted a sunset over the lake with her kids in May 2023.",
    "How do I roll back a deployment that only half of the nodes have taken?",
    "Retry with exponential backoff, but never more than five times.",
    "Who suggested to postpone the release?",
    "Wir haben beschlossen, die Migration auf nächste Woche zu verschieben.",
    "What did the doctor say about his knee after the marathon?",
    "She adopted a puppy from the shelter and named it Oliver.",
    "The invoice totals 1,284.50 euros and is due on 2026-03-31.",
)


def least_cosine(first: Sequence[Encoding], second: Sequence[Encoding]) -> float:
    """Least cosine of two models' vectors of the same texts; -1 when the dimensions differ."""
    pairs = list(zip(first, second, strict=True))
    if any(a.vector.shape != b.vector.shape for a, b in pairs):
        return -1.0
    return min(float(a.vector @ b.vector) for a, b in pairs)
