"""The settings of the routes of Azure AI Personalizer."""

from __future__ import annotations

from fastbandit.declaration import part
from fastbandit.settings.ranges import FROM_1, OFFERED, ROUTE, entry


@part("service", name="personalizer")
class PersonalizerConfig:
    """Whether the routes of Azure AI Personalizer are served, for its own clients."""

    enabled: bool = entry(False, "serve the routes of Azure AI Personalizer as well")
    prefix: str = entry("/personalizer", "path under which they are served", ROUTE)
    max_actions: int = entry(50, "actions that a rank may bring", OFFERED)
    draws: int = entry(100, "draws by which the probabilities of a rank are estimated", OFFERED)
    max_decisions: int = entry(100_000, "decisions that an evaluation may be of", FROM_1)
