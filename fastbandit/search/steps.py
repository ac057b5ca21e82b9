"""What compiled code does in place of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import nn

from fastbandit.errors import SettingError
from fastbandit.interfaces import Search


@dataclass(frozen=True)
class CompiledSteps:
    """The steps of a compiled search, which is a "scan", an "ascent" or by a "generator".

    Points to begin from, how many of them are looked up and in how many partitions, the outermost
    arms that come along, hops and their beam, the steps of a climb, the length of its first, the
    score that is enough, and the layers of a generator.
    """

    kind: str = "scan"
    starts: int = 0
    lookups: int = 0
    partitions: int = 0
    far: int = 0
    hops: int = 0
    beam: int = 0
    steps: int = 0
    step_size: float = 0.0
    enough: float = math.inf
    generator: nn.Module | None = None


def walk_steps(search: Any, starts: int) -> CompiledSteps:
    """Return the steps of a search that begins from so many points, lands near them and hops."""
    if search.neighbours:
        raise SettingError(
            f"A search by nearest neighbours cannot be frozen: got neighbours="
            f"{search.neighbours}. Use partitions= and neighbours=0, or select with the Bandit."
        )
    return CompiledSteps(
        starts=starts,
        lookups=min(search.lookups or starts, starts),
        partitions=search.partitions,
        far=search.far,
        hops=search.hops,
        beam=search.beam,
        steps=search.steps,
        step_size=search.step_size,
    )


def compiled_steps(search: Search) -> CompiledSteps:
    """Return the compiled steps of a search, or raise what it lacks."""
    compiled = getattr(search, "compiled", None)
    if compiled is None:
        raise SettingError(
            f"This search cannot be frozen: {type(search).__name__} has no method compiled, which "
            f"returns CompiledSteps. Write one, use search='generator', 'ascent' or 'exhaustive', "
            f"or select with the Bandit."
        )
    return compiled()
