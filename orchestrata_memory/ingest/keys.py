"""Stable keys for the parts of a file."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Final

_HASH_LETTERS: Final = 20
_LONGEST_NAME: Final = 80


class PartKeys:
    """Names each part by the file's name and what is in it, and counts equal ones apart.

    A part keeps its key when other parts are put in or taken out before it, so that reading a
    changed file again stores only what is new.
    """

    def __init__(self, name: str) -> None:
        printable = "".join(letter if letter.isprintable() else "_" for letter in name)
        self._name = printable.encode(errors="replace")[:_LONGEST_NAME].decode(errors="ignore")
        self._seen: Counter[str] = Counter()

    def of(self, *parts: str | None) -> str:
        """The key of the part that these texts make up."""
        text = "\0".join(part or "" for part in parts)
        key = f"{self._name}:{sha256(text.encode()).hexdigest()[:_HASH_LETTERS]}"
        self._seen[key] += 1
        return key if self._seen[key] == 1 else f"{key}:{self._seen[key]}"
