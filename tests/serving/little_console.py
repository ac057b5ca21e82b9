"""A data folder with a log whose clock is set by hand, and what the console shows of it."""

from __future__ import annotations

from pathlib import Path

from fastbandit.serving.console.answer import Console
from fastbandit.serving.console.figures import Figures
from fastbandit.storage.events import DecisionMade, Event
from fastbandit.storage.sqlite_log import SqliteLog

SECOND = 1_000_000
HOUR = 3600 * SECOND
BEGIN = 1_700_000_000 * SECOND - 1_700_000_000 * SECOND % (24 * HOUR)
WAIT = 60 * SECOND


class LoggedService:
    """A data folder with a log, and a clock that goes on by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, BEGIN
        self.log = SqliteLog(folder / "events.db", clock=lambda: self.now)
        self.figures = Figures(
            folder / "events.db", folder / "snapshots", folder, clock=lambda: self.now
        )

    def write(self, *events: Event, after_s: float = 0.0) -> None:
        self.now += round(after_s * SECOND)
        self.log.append(events)

    def show(self, minutes: int | None = None) -> Console:
        return self.figures.figures(minutes)


def made(
    id: str, *arms: str | int, version: int = 0, default_reward: float = 0.0, adds_up: bool = False
) -> DecisionMade:
    return DecisionMade(
        id=id,
        context=[0.5],
        arms=list(arms or ("a",)),
        scores=[0.0] * len(arms or "a"),
        seed=1,
        version=version,
        catalogue=0,
        wait=WAIT,
        default_reward=default_reward,
        adds_up=adds_up,
    )
