"""A log of Personalizer, as a page of news would have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TOPICS = ("politics", "sport", "music", "food")
WANTED = {"Tom": "music", "Anna": "sport"}


def actions(order: Any) -> list[dict[str, Any]]:
    """Return the actions of a decision, as the log has them."""
    return [
        {
            "_tag": TOPICS[n],
            "i": {"constant": 1, "id": TOPICS[n]},
            "j": [{"article": {"topic": TOPICS[n], "length": 2 + int(n)}}],
        }
        for n in order
    ]


def lines(count: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield decisions, each action as likely as in a policy that explores half of the time.

    All probabilities are powers of two: so single precision has their inverses exactly.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        name, order = ("Tom", "Anna")[rng.integers(2)], rng.permutation(4)
        shares = np.array([0.5, 0.25, 0.125, 0.125])
        taken = int(rng.choice(4, p=shares))
        likely = 0.875 if TOPICS[order[taken]] == WANTED[name] else 0.125
        reward = float(rng.random() < likely)
        others = [n for n in range(4) if n != taken]
        yield {
            "_label_cost": -reward,
            "_label_probability": float(shares[taken]),
            "_label_Action": taken + 1,
            "_labelIndex": taken,
            "o": [{"EventId": f"e{number}", "v": reward}] if reward else [],
            "Timestamp": f"2024-05-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z",
            "Version": "1",
            "EventId": f"e{number}",
            "a": [taken + 1, *(n + 1 for n in others)],
            "c": {"FromUrl": [{"user": {"name": name}}], "_multi": actions(order)},
            "p": [float(shares[n]) for n in (taken, *others)],
            "VWState": {"m": "m"},
        }


def write_lines(path: Path, count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Write a log, and return what it says."""
    found = list(lines(count, seed=seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in found), encoding="utf-8")
    return found
