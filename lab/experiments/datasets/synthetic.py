"""h1, h1b, h2 and h3 on the unit sphere."""

from __future__ import annotations

from pathlib import Path

from fastbandit.declaration import known_name
from fastbandit.demo.synthetic import Synthetic
from lab.experiments.drift import KINDS, Drift


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    dim: int = 4,
    arms: int = 10_000,
    noise: float = 1.0,
    drift: str = "none",
    period: int = 1000,
) -> Synthetic:
    """Make a synthetic environment; it needs no files."""
    known_name("drift", drift, ("none", *KINDS))
    turning = None if drift == "none" else Drift(drift, period, seed)
    return Synthetic(name, dim, arms, noise=noise, seed=seed, drift=turning)
