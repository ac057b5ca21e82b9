"""What the learner left in its files: versions, refusals, audits, and what it does now.

Whatever is missing or cannot be read is not shown; it never keeps the rest from being shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from fastbandit.errors import SnapshotError
from fastbandit.serving.console.answer import Audit, Candidate, Check, Curve, Learner
from fastbandit.storage.snapshot_store import SnapshotStore

_MOST_POINTS = 120
_MOST_REFUSED = 20
_MOST_AUDITS = 100


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

    def audits(self) -> list[Audit]:
        """Give the audits of live choices, oldest first."""
        told = _read(self.data_dir / "audits.json")
        found = told.get("audits") if isinstance(told, dict) else told
        entries = found if isinstance(found, list) else [told]
        audits = [_to_audit(entry) for entry in entries if isinstance(entry, dict)]
        return [audit for audit in audits if audit is not None][-_MOST_AUDITS:]

    def learner(self) -> Learner | None:
        """Tell what the learner does now, None where it has not said."""
        told = _read(self.data_dir / "learner.json")
        if not isinstance(told, dict):
            return None
        return Learner(
            state=str(told.get("state", "unknown")),
            detail=str(told.get("detail", "")),
            at=_milliseconds(told.get("at")),
            fresh=_whole(told.get("fresh")),
            needed=_whole(told.get("needed")),
        )

    def _read_candidates(self) -> list[Candidate]:
        refused = {report.get("version"): report for report in self.store.refused()}
        current = None
        with suppress(SnapshotError):
            found = self.store.current()
            current = None if found is None else found.version
        published = [
            _to_candidate(
                {"version": one.version, "cut": {"pairs": one.cut.pairs, "at": one.cut.at}},
                one.notes,
                is_current=one.version == current,
            )
            for one in self.store.list()
            if one.version not in refused
        ]
        reports = [
            _to_candidate(report, report, refused=str(report.get("reason", "No reason was given.")))
            for report in list(refused.values())[-_MOST_REFUSED:]
        ]
        return sorted(published + reports, key=lambda one: one.version, reverse=True)


def _to_candidate(
    told: dict[str, Any],
    notes: dict[str, Any],
    *,
    is_current: bool = False,
    refused: str | None = None,
) -> Candidate:
    cut = told.get("cut")
    cut = cut if isinstance(cut, dict) else {}
    return Candidate(
        version=_whole(told.get("version")) or 0,
        at=_milliseconds(cut.get("at")),
        pairs=_whole(cut.get("pairs")),
        checks=[Check(name, value) for name, value in _numbers(notes.get("checks"))],
        curves=[Curve(name, values) for name, values in _lists(notes)],
        is_current=is_current,
        refused=refused,
    )


def _to_audit(told: dict[str, Any]) -> Audit | None:
    quality = _number(told.get("quality", told.get("q")))
    if quality is None:
        return None
    return Audit(
        version=_whole(told.get("version")),
        quality=quality,
        low=_number(told.get("low")),
        high=_number(told.get("high")),
        count=_whole(told.get("count")) or 0,
        at=_milliseconds(told.get("at")),
    )


def _numbers(told: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Give all numbers of nested objects, named by the way to them."""
    if isinstance(told, dict):
        for key, inner in told.items():
            yield from _numbers(inner, f"{name} {key}".strip())
    elif isinstance(told, list):
        for inner in told:
            if isinstance(inner, dict) and "name" in inner:
                yield from _numbers(inner.get("value"), str(inner["name"]))
    elif (number := _number(told)) is not None:
        yield name, number


def _lists(told: Any, name: str = "") -> Iterator[tuple[str, list[float]]]:
    """Give all lists of numbers of nested objects, thinned to what a small chart can show."""
    if isinstance(told, dict):
        for key, inner in told.items():
            yield from _lists(inner, str(key))
    elif isinstance(told, list) and len(told) > 1:
        values = [number for number in map(_number, told) if number is not None]
        if len(values) == len(told):
            step = -(-len(values) // _MOST_POINTS)
            yield name, values[::step]


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
