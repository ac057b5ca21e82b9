"""A log to be exported: decisions of little content, and a clock that is moved by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastbandit.storage.events import DecisionMade
from fastbandit.storage.exports import export
from fastbandit.storage.joined_rows import Bounds

START = 1_767_225_600_000_000  # 2026 begins
WAIT = 10


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def made(id: str, arms: tuple[str | int, ...] = ("a",), **more: Any) -> DecisionMade:
    """Make a decision for which some fields are given."""
    more = {"seed": 1, "version": 2, "catalogue": 0, "wait": WAIT, "default_reward": -1.0, **more}
    return DecisionMade(id, [0.5, 1.5], list(arms), [0.1] * len(arms), **more)


def lines(tmp_path: Path, format: str = "jsonl", bounds: Bounds | None = None) -> list[Any]:
    """Export the log of a folder, and read the lines."""
    out = tmp_path / f"out.{format}"
    export(tmp_path, out, format, bounds=bounds or Bounds())
    return [json.loads(line) for line in out.read_text().splitlines()]
