"""Settings of the engine, and how they are loaded."""

from orchestrata_memory.config.loader import load_settings
from orchestrata_memory.config.settings import MemoryEngineSettings

__all__ = ["MemoryEngineSettings", "load_settings"]
