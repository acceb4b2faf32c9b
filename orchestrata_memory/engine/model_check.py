"""Whether the graph's vectors are of the configured model."""

from __future__ import annotations

from orchestrata_memory.cold.base import ColdStore
from orchestrata_memory.errors import MemoryConfigurationError


class ModelCheck:
    """Asks the graph once; until it has passed, no vector may be written there.

    Two models that took turns would embed the whole graph again and again.

    Args:
        model: The configured model.
        replace: Whether vectors of another one are to be replaced.

    Attributes:
        passed: Vectors of the model may be written.

    Traces: REQ-010-038
    """

    def __init__(self, cold: ColdStore, model: str, *, replace: bool) -> None:
        self._cold = cold
        self._model = model
        self._replace = replace
        self.passed = False

    async def run(self) -> None:
        """Ask the graph, which must be open.

        Raises:
            MemoryConfigurationError: Vectors of another model are stored.
        """
        stored = await self._cold.embedding_models()
        others = {name: count for name, count in stored.items() if name != self._model}
        if others and not self._replace:
            told = ", ".join(f"{count} by {name}" for name, count in sorted(others.items()))
            raise MemoryConfigurationError(
                f"embedding.model: the graph holds vectors of another model ({told}) than "
                f"{self._model}: configure that model, or set "
                "embedding.replace_model: true to have everything embedded anew"
            )
        self.passed = True
