"""A small kernel, so that the engine runs alone; a real kernel takes its place unchanged."""

from orchestrata_memory.kernel.bus import InProcessEventBus
from orchestrata_memory.kernel.directory import ConfiguredDirectory
from orchestrata_memory.kernel.facts import EventFactEmitter
from orchestrata_memory.kernel.kernel import InProcessKernel

__all__ = ["ConfiguredDirectory", "EventFactEmitter", "InProcessEventBus", "InProcessKernel"]
