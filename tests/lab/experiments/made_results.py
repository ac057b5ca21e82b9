"""Results as their files hold them, with numbers that are easy to check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def play(policy: str, share: float = 0.5, **changes: Any) -> dict[str, Any]:
    """Return a play of three batches of ten rounds, of which the best would earn one each."""
    result = {
        "format": 1,
        "kind": "play",
        "dataset": "h1",
        "options": {},
        "policy": policy,
        "preset": "default",
        "rounds": 30,
        "batch": 10,
        "seed": 0,
        "device": "cpu",
        "arms": 10_000,
        "earned": [10.0 * share] * 3,
        "best": [10.0] * 3,
        "quality": None,
        "qualities": [],
        "evaluations": 7.0,
        "lookups": 2.0,
        "select_seconds": 0.002,
        "update_seconds": 1.5,
        "index": None,
        "seconds": 1.0,
        "notes": [],
        "version": "0.1.0",
        "commit": "0123456789abcdef",
    }
    return result | changes


def runtime(policy: str, **changes: Any) -> dict[str, Any]:
    result = {
        "format": 1,
        "kind": "runtime",
        "dataset": "h1",
        "options": {},
        "policy": policy,
        "preset": "default",
        "device": "cpu",
        "arms": 10_000,
        "single": 8.24,
        "batch": 0.007,
        "train": 4.56,
        "requests": 100,
        "batch_size": 50,
        "machine": "a small machine",
    }
    return result | changes


def replayed(policy: str, mean: float | None = 0.2, **changes: Any) -> dict[str, Any]:
    result = {
        "format": 1,
        "kind": "replay",
        "dataset": "openbandit",
        "options": {"mode": "replay"},
        "policy": policy,
        "preset": "default",
        "seed": 0,
        "matches": 40,
        "mean": mean,
        "low": None if mean is None else mean - 0.1,
        "high": None if mean is None else mean + 0.1,
    }
    return result | changes


def scaling(policy: str, **changes: Any) -> dict[str, Any]:
    result = {
        "format": 1,
        "kind": "scaling",
        "policy": policy,
        "preset": "default",
        "device": "cpu",
        "arms": [100, 10_000],
        "seconds": [0.001, 0.1],
        "quality": [1.0, 0.99],
        "slope": 1.0,
    }
    return result | changes


def training(**changes: Any) -> dict[str, Any]:
    ratios = {"TS": 2.0, "UCB": 3.0, "TS seconds": [4.0, 2.0], "UCB seconds": [6.0, 2.0]}
    result = {"format": 1, "kind": "training", "dataset": "h1", "options": {}, "ratios": ratios}
    return result | {"preset": "default"} | changes


def of_every_kind() -> list[dict[str, Any]]:
    return [
        *(play("Exhaust TS", 0.8, seed=seed, quality=1.0) for seed in (0, 1)),
        *(play("GANBandit TS", 0.8 - 0.1 * seed, seed=seed, quality=0.99) for seed in (0, 1)),
        play("LinearTS", 0.3, notes=["Rows <without> a label & more are left out."]),
        *(play("Learned best arm", 0.3, seed=seed) for seed in (0, 1)),
        play("GANBandit TS", 0.2, preset="paper"),
        play("GP-UCB", 0.9, dataset="sines", arms=None),
        runtime("Exhaust TS"),
        runtime("GANBandit TS", single=8.24e-3, batch=7e-5, train=9.12),
        replayed("Random"),
        scaling("GANBandit TS", slope=0.04),
        training(),
    ]


def write(results: list[dict[str, Any]], folder: Path) -> Path:
    for number, result in enumerate(results):
        path = folder / result.get("dataset", "none") / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result))
    return folder
