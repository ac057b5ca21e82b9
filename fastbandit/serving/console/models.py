"""What the learner left in its files: versions, rejections, audits, and what it does now.

Whatever is missing or cannot be read is not shown, and everything else is.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from fastbandit.errors import SnapshotError
from fastbandit.files.atomic import mark_of
from fastbandit.serving.console.answer import Audit, Candidate, Comparison, Learner
from fastbandit.storage.snapshot_store import SnapshotStore

_MOST_POINTS = 120
_MOST_REJECTED = 20
_T = TypeVar("_T")


class _Cut(Struct):
    """What a version was made of, as its notes say; `pairs` is the name of older files."""

    at: float = 0.0
    interactions: int | None = None
    pairs: int | None = None


class _Checks(Struct):
    """What was measured of a version before it was published; `worse` is of older ones."""

    quality: float | None = None
    recall: float | None = None
    held_out: int | None = None
    loss: float | None = None
    worse: float | None = None
    in_service: Comparison | None = None
    constant: Comparison | None = None
    popularity: Comparison | None = None


class _Notes(Struct):
    """What is written beside a version, or in the report of one that was rejected."""

    arms: int | None = None
    reason: str = "No reason was given."
    cut: _Cut = field(default_factory=_Cut)
    checks: _Checks = field(default_factory=_Checks)
    curve: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class Models:
    """Reads the snapshot store, `learner.json` and `audits.json` again when they changed."""

    store: SnapshotStore
    data_dir: Path

    def __post_init__(self) -> None:
        self._seen: tuple[tuple[int, int] | None, ...] = ()
        self._candidates: list[Candidate] = []

    def candidates(self) -> list[Candidate]:
        """Return the versions in the store and those that were rejected, newest first."""
        folder = self.store.folder
        seen = tuple(mark_of(path) for path in (folder, self.store.pointer, folder / "refused"))
        if seen != self._seen:
            self._candidates, self._seen = self._read_candidates(), seen
        return self._candidates

    def audit(self) -> Audit | None:
        """Return the audit of the live choices of one version, None where there was none."""
        return _read(self.data_dir / "audits.json", Audit)

    def learner(self) -> Learner | None:
        """Return what the learner does now, None where it has not reported."""
        return _read(self.data_dir / "learner.json", Learner)

    def _read_candidates(self) -> list[Candidate]:
        rejected = {int(report.get("version") or 0): report for report in self.store.refused()}
        current = None
        with suppress(SnapshotError):
            found = self.store.current()
            current = None if found is None else found.version
        candidates = [
            _to_candidate(
                one.version,
                {**one.notes, "cut": msgspec.to_builtins(one.cut)},
                is_current=one.version == current,
            )
            for one in self.store.list()
            if one.version not in rejected
        ]
        for version, report in list(rejected.items())[-_MOST_REJECTED:]:
            candidates.append(_to_candidate(version, report, is_rejected=True))
        return sorted(candidates, key=lambda one: one.version, reverse=True)


def _to_candidate(
    version: int, raw: dict[str, Any], *, is_current: bool = False, is_rejected: bool = False
) -> Candidate:
    try:
        notes = msgspec.convert(raw, _Notes)
    except msgspec.ValidationError:
        notes = _Notes()
    cut, checks = notes.cut, notes.checks
    before = checks.in_service
    if checks.loss is not None and checks.worse is not None:
        before = Comparison(checks.loss - checks.worse, checks.worse)
    return Candidate(
        version=version,
        at=int(cut.at / 1000) or None,
        interactions=cut.pairs if cut.interactions is None else cut.interactions,
        arms=notes.arms,
        quality=checks.quality,
        recall=checks.recall,
        held_out=checks.held_out,
        loss=checks.loss,
        in_service=before,
        constant=checks.constant,
        popularity=checks.popularity,
        curve=_thinned([point for point in notes.curve if all(map(isfinite, point))]),
        is_current=is_current,
        rejected=notes.reason if is_rejected else None,
    )


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return about as many points as a small chart can show, among them the last."""
    step = -(-len(points) // _MOST_POINTS) or 1
    return points[::-step][::-1]


def _read(path: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError):
        return None
