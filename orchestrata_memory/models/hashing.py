"""The hash by which a text is known again."""

from __future__ import annotations

import hashlib


def content_hash(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8.

    A memory's content never has lone surrogates; what is only embedded may, and has a hash too.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
