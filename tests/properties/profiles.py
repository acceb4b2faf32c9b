"""How long the histories run: ``PROPERTY_PROFILE`` is ``ci`` (a minute, always the same
histories) or ``long`` (new ones each time; ``PROPERTY_EXAMPLES`` says how many)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

LONG = os.environ.get("PROPERTY_PROFILE", "ci") == "long"
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "500"))


def histories(ci_examples: int) -> settings:
    """Settings for tests on real servers, where shrinking would take minutes."""
    return settings(
        max_examples=EXAMPLES if LONG else ci_examples,
        derandomize=not LONG,
        database=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
