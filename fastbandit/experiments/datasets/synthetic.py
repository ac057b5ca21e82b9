"""h1, h1b, h2 and h3 on the unit sphere."""

from __future__ import annotations

from pathlib import Path

from fastbandit.experiments.synthetic import Synthetic


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    dim: int = 4,
    arms: int = 10_000,
    noise: float = 1.0,
) -> Synthetic:
    """Make a synthetic world; it needs no files."""
    return Synthetic(name, dim, arms, noise=noise, seed=seed)
