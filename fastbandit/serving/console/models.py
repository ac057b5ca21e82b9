"""What the learner left in its files: versions, refusals, audits, and what it does now.

Whatever is missing or cannot be read is not shown; it never keeps the rest from being shown.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from fastbandit.errors import SnapshotError
from fastbandit.serving.console.answer import Audit, Candidate, Learner
from fastbandit.storage.snapshot_store import SnapshotStore

_MOST_POINTS = 120
_MOST_REFUSED = 20


@dataclass
class Models:
    """Reads the snapshot store, `learner.json` and `audits.json` again when they changed."""

    store: SnapshotStore
    data_dir: Path

    def __post_init__(self) -> None:
        self._seen: tuple[int, ...] = ()
        self._candidates: list[Candidate] = []

    def candidates(self) -> list[Candidate]:
        """Give the versions that are kept and those that were refused, newest first."""
        folder = self.store.folder
        seen = tuple(_changed_at(path) for path in (folder, self.store.pointer, folder / "refused"))
        if seen != self._seen:
            self._candidates, self._seen = self._read_candidates(), seen
        return self._candidates

    def audit(self) -> Audit | None:
        """Give the audit of the live choices of one version, None where there was none."""
        told = _object(_read(self.data_dir / "audits.json"))
        quality, lowest = _number(told.get("quality")), _number(told.get("lowest"))
        if quality is None or lowest is None:
            return None
        return Audit(
            _whole(told.get("version")) or 0, quality, lowest, _whole(told.get("count")) or 0
        )

    def learner(self) -> Learner | None:
        """Tell what the learner does now, None where it has not said."""
        told = _read(self.data_dir / "learner.json")
        if not isinstance(told, dict):
            return None
        return Learner(
            state=str(told.get("state", "unknown")),
            error=str(told.get("error", "")),
            fresh=_whole(told.get("fresh")),
            needed=_whole(told.get("needed")),
            seconds=_number(told.get("seconds")),
        )

    def _read_candidates(self) -> list[Candidate]:
        refused = {_whole(report.get("version")) or 0: report for report in self.store.refused()}
        current = None
        with suppress(SnapshotError):
            found = self.store.current()
            current = None if found is None else found.version
        published = [
            _to_candidate(
                one.version, asdict(one.cut), one.notes, is_current=one.version == current
            )
            for one in self.store.list()
            if one.version not in refused
        ]
        reports = [
            _to_candidate(version, report.get("cut"), report, refused=_reason(report))
            for version, report in list(refused.items())[-_MOST_REFUSED:]
        ]
        return sorted(published + reports, key=lambda one: one.version, reverse=True)


def _to_candidate(
    version: int,
    cut: Any,
    notes: dict[str, Any],
    *,
    is_current: bool = False,
    refused: str | None = None,
) -> Candidate:
    cut, checks = _object(cut), _object(notes.get("checks"))
    loss, worse = _number(checks.get("loss")), _number(checks.get("worse"))
    return Candidate(
        version=version,
        at=_milliseconds(cut.get("at")),
        pairs=_whole(cut.get("interactions", cut.get("pairs"))),
        arms=_whole(notes.get("arms")),
        quality=_number(checks.get("quality")),
        recall=_number(checks.get("recall")),
        held_out=_whole(checks.get("held_out")),
        loss=loss,
        parent_loss=None if loss is None or worse is None else loss - worse,
        curve=_thinned(_points(notes.get("curve"))),
        is_current=is_current,
        refused=refused,
    )


def _points(told: Any) -> list[tuple[float, float]]:
    """Read pairs of numbers; what is none is left out."""
    pairs = [pair for pair in told if isinstance(pair, list)] if isinstance(told, list) else []
    points = [tuple(map(_number, pair)) for pair in pairs if len(pair) == 2]
    return [(x, y) for x, y in points if x is not None and y is not None]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep about as many points as a small chart can show, among them the last."""
    step = -(-len(points) // _MOST_POINTS) or 1
    return points[::-step][::-1]


def _reason(report: dict[str, Any]) -> str:
    return str(report.get("reason", "No reason was given."))


def _object(told: Any) -> dict[str, Any]:
    return told if isinstance(told, dict) else {}


def _number(told: Any) -> float | None:
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return float(told) if is_number and isfinite(told) else None


def _whole(told: Any) -> int | None:
    number = _number(told)
    return None if number is None else int(number)


def _milliseconds(told: Any) -> int | None:
    """Read a time in microseconds since 1970."""
    number = _number(told)
    return None if not number else int(number / 1000)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
