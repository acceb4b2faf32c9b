"""Local servers for an engine that was given none: Redis or Valkey, and ArcadeDB."""

from orchestrata_memory.embedded.layout import default_data_dir
from orchestrata_memory.embedded.servers import (
    EmbeddedAddresses,
    EmbeddedServers,
    EmbeddedStatus,
)

__all__ = ["EmbeddedAddresses", "EmbeddedServers", "EmbeddedStatus", "default_data_dir"]
