"""A lattice of up to 10⁸ arms, worked out as they are asked for."""

from __future__ import annotations

from pathlib import Path

from lab.experiments.procedural import Procedural


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    arms: int = 1_000_000,
    dim: int = 4,
    noise: float = 1.0,
) -> Procedural:
    """Make a procedural catalogue; it needs no files."""
    return Procedural(arms, dim, noise=noise, seed=seed)
