"""A log of decisions and a table of arms, as a shop would have them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

ARMS = 6
TITLES = ("shoes for running in the rain", "a novel about the sea")


def write_tables(folder: Path, *, decisions: int = 300) -> tuple[Path, Path]:
    """Write decisions.csv and items.csv: in Oslo people want sport, in Rome books."""
    items = [
        [f"item{n}", TITLES[n % 2], "" if n == 4 else f"{5 + n}.5", f"2024-0{1 + n}-01"]
        for n in range(ARMS)
    ]
    rng, rows = np.random.default_rng(0), []
    for n in range(decisions):
        city, arm = ("Oslo", "Rome")[rng.integers(2)], int(rng.integers(ARMS))
        likely = 0.9 if (city == "Oslo") == (arm % 2 == 0) else 0.1
        age = "" if n % 7 == 0 else 20 + n % 50
        rows.append([n, city, age, f"item{arm}", int(rng.random() < likely), round(1 / ARMS, 6)])
    log, arms = folder / "decisions.csv", folder / "items.csv"
    _write(log, ["time", "city", "age", "item_id", "reward", "propensity"], rows)
    _write(arms, ["item_id", "title", "price", "since"], items)
    return log, arms


def _write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def quick_preset(folder: Path) -> Path:
    """Write settings with which learning takes a moment."""
    path = folder / "quick.toml"
    path.write_text("format = 1\n[training.reward]\niterations = 300\n", encoding="utf-8")
    return path
