"""The memory of an agent platform."""
