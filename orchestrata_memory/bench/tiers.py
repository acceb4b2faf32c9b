"""Which tier a bench asks."""

from __future__ import annotations

from typing import Literal

Tier = Literal["hot", "cold"]
"""``hot``: every session open. ``cold``: every session closed, promotion off."""
