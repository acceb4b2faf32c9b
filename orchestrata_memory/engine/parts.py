"""The parts an engine is assembled from, each replaceable in the container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.embedded.servers import EmbeddedAddresses
from orchestrata_memory.embedding.base import Embedder
from orchestrata_memory.engine.audit import AuditTrail
from orchestrata_memory.engine.delegating import Delegations
from orchestrata_memory.governance.base import Governance
from orchestrata_memory.hot.base import HotStore
from orchestrata_memory.retrieval.analysis import TextAnalyzer
from orchestrata_memory.retrieval.find import FindPipeline
from orchestrata_memory.retrieval.hot_index import HotIndex
from orchestrata_memory.retrieval.search import SearchPipeline
from orchestrata_memory.summaries.abstractive import AbstractiveSummarizer
from orchestrata_memory.tokens.anthropic import AnthropicTokenCheck
from orchestrata_memory.tokens.registry import CounterRegistry


class ServerSource(Protocol):
    """Starts what is not configured, and stops what it started."""

    async def start(self) -> EmbeddedAddresses:
        """Start, or join, the embedded servers; nothing where all is configured."""
        ...

    async def stop(self) -> None:
        """Leave them; the last one to leave stops them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything behind the operations."""

    hot: HotStore
    cold: ColdStore
    embedder: Embedder
    governance: Governance
    delegations: Delegations
    audit: AuditTrail
    analyzer: TextAnalyzer
    index: HotIndex
    search: SearchPipeline
    find: FindPipeline
    counters: CounterRegistry
    abstractive: AbstractiveSummarizer | None
    token_check: AnthropicTokenCheck | None
