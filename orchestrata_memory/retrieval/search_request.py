"""What a search is asked, and what it works with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from orchestrata_memory.config.settings import SearchSettings
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.models import MemoryScope
from orchestrata_memory.retrieval.analysis import TextAnalyzer
from orchestrata_memory.retrieval.cold_source import ColdSource
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.hot_source import HotSource
from orchestrata_memory.retrieval.search_rights import SearchRights
from orchestrata_memory.retrieval.weights import EVERYTHING, Ingredients

TierChoice = Literal["both", "hot", "cold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTools:
    """What every search uses."""

    hot: HotSource
    cold: ColdSource
    index: HotIndex
    embedder: Embedder
    governance: Governance
    rights: SearchRights
    analyzer: TextAnalyzer
    settings: SearchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is asked, by whom; see `SearchPipeline.search`."""

    volk_id: str
    query: str
    scope: MemoryScope
    limit: int
    min_similarity: float
    now: datetime
    include_summaries: bool
    tiers: TierChoice
    ingredients: Ingredients = EVERYTHING
