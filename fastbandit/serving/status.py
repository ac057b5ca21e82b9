"""What the service says of itself."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct

from fastbandit import __version__
from fastbandit.serving.schemas import Reason
from fastbandit.serving.service import Service
from fastbandit.storage.events import Who


class Status(Struct):
    """What serves now, why it is degraded if it is, and what the learner does.

    `decides` is who decides; `baseline` is where the baseline's arm comes from, if anywhere.
    """

    fastbandit: str
    ready: bool
    reasons: list[Reason]
    problems: list[Reason]
    version: int | None
    catalogue: int
    arms: int
    arms_not_indexed: int
    events: int
    uptime_seconds: float
    learner: dict[str, Any]
    serving: dict[str, float | int | None]
    rewards: dict[str, int]
    decides: Who = "bandit"
    baseline: str = ""


def status_of(service: Service) -> Status:
    """Say what serves now, and how well."""
    serving, reasons = service.decider.serving, service.reasons()
    shadow = service.decider.shadow
    return Status(
        fastbandit=__version__,
        ready=not reasons,
        reasons=reasons,
        problems=service.problems(),
        version=service.version,
        catalogue=0 if serving is None else serving.catalogue,
        arms=0 if serving is None else len(serving.bandit),
        arms_not_indexed=0 if serving is None else serving.bandit.waiting,
        events=service.last_event,
        uptime_seconds=round(time.time() - service.started, 3),
        learner=service.learner.state(),
        serving=service.metrics.quantiles(),
        rewards=dict(service.metrics.rewards),
        decides="bandit" if shadow is None else shadow.decides,
        baseline="" if shadow is None else shadow.baseline,
    )
