"""The CXP packet: the envelope components hand each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class CXPPacket:
    """An envelope with metadata; an injection fills ``metadata["memory_context"]``."""

    packet_id: str = ""
    source: str = ""
    target: str = ""
    payload: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
