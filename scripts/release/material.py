"""What a clean environment is tried with: a frozen bandit, its choice, and a little log."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

_ROWS, _ARMS, _DIM = 40, 200, 4


def make_material(folder: Path) -> Path:
    """Train and freeze a little bandit, and write its choice and a log; needs torch."""
    from fastbandit import Bandit

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(_ROWS, _DIM)).astype(np.float32)
    bandit = Bandit(
        arms=rng.normal(size=(_ARMS, _DIM)), context=_DIM, reward="real", seed=0, progress=False
    )
    taken = bandit.select(contexts)
    rewards = contexts[:, 0]
    bandit.update(contexts=contexts, arms=taken.arms, rewards=rewards)
    frozen = bandit.freeze()
    frozen.save(folder / "frozen")
    chosen = frozen.select_one(np.zeros(_DIM, dtype=np.float32), seed=7)
    (folder / "expected.json").write_text(json.dumps({"arm": chosen.arm}), encoding="utf-8")
    with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x_{number}" for number in range(_DIM)), "arm", "reward", "p"])
        for context, row, reward in zip(contexts, taken.rows[:, 0], rewards, strict=True):
            writer.writerow([*context.tolist(), int(row), float(reward), 1 / _ARMS])
    return folder
