"""Files into memories: chat transcripts, LoCoMo's JSON, Markdown, plain text."""

from orchestrata_memory.ingest.base import Format, IngestItem
from orchestrata_memory.ingest.reading import PART_BYTES, detect_format, read_items

__all__ = ["PART_BYTES", "Format", "IngestItem", "detect_format", "read_items"]
