"""Brings together what the console shows: from the log, and from the learner's files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
from msgspec import json
from msgspec.structs import replace

from fastbandit.errors import LogError
from fastbandit.serving.console import answer
from fastbandit.serving.console.arm_counts import ArmCounts
from fastbandit.serving.console.bands import difference_of, mean_of
from fastbandit.serving.console.buckets import SECOND, ask
from fastbandit.serving.console.models import Models
from fastbandit.serving.console.notes import RULES, Notes
from fastbandit.serving.console.tally import BASELINE, DELAYS_S, Sums, Tally
from fastbandit.storage.events import REWARD_STATUSES
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import clock_of

_MOST_BUCKETS = 72
_WIDTHS_S = (10, 30, 60, 120, 300, 600, 1200, 3600, 10800, 21600, 43200, 86400)
_READING_S = 0.3
_NONE = Sums()
_LATEST = """
SELECT id, at, version, arms FROM main.decisions WHERE arms <> '[]' ORDER BY seq DESC LIMIT 10
"""  # without arms are those that were forgotten, or are deferred


@dataclass(frozen=True)
class _Range:
    """The buckets to show: from `since` on, `count` of them, each `width` wide (microseconds).

    `asked` is where they would begin if all of the log were read.
    """

    asked: int
    since: int
    width: int
    count: int
    now: int


class Figures:
    """Reads the log through a connection of its own, from one thread at a time.

    An answer reads on for about 0.3 s at most; a long log that it has not seen is read newest
    first, over several answers, and each says how far it is. Where another file replaced the
    log, as a new copy of a shared one does, it begins anew.
    """

    def __init__(
        self,
        log_path: str | Path,
        store_folder: str | Path,
        data_dir: str | Path,
        *,
        is_shared: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._path, self._is_shared, self._given_clock = Path(log_path), is_shared, clock
        self._models = Models(SnapshotStore(store_folder), Path(data_dir))
        self._connection: apsw.Connection | None = None

    def figures(
        self, minutes: int | None, *, serving: dict[str, Any] | None = None, note: str | None = None
    ) -> answer.Console:
        """Return everything that happened in the last minutes (None: since the beginning).

        A note on the log itself stands with the others.
        """
        try:
            if self._connection is not None and _identity(self._path) != self._opened:
                self.close()
            if self._connection is None:
                self._open()
            return self._collect(minutes, serving or {}, note)
        except apsw.Error as error:
            self.close()
            raise LogError(
                f"The console needs a log that can be read: {self._path} cannot "
                f"({type(error).__name__}: {error}). See that the file and its folder are there."
            ) from error

    def close(self) -> None:
        """Let go of the log, and of what was counted."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> None:
        connection = connect(self._path, is_reader=True)
        connection.set_busy_timeout(5_000)
        self._opened = _identity(self._path)
        self._clock = self._given_clock or clock_of(connection)
        self._tally, self._chosen = Tally(connection), ArmCounts(connection)
        self._connection = connection

    def _collect(
        self, minutes: int | None, serving: dict[str, Any], note: str | None
    ) -> answer.Console:
        now = self._clock()
        self._tally.read_on(now, seconds=_READING_S)
        shown = self._range(minutes, now)
        versions = self._tally.by_version(since=shown.since, now=now)
        statuses = self._tally.statuses(since=shown.since)
        candidates, audit = self._models.candidates(), self._models.audit()
        known = _known_arms(serving, candidates)
        arms = self._chosen.figures(minutes, since=shown.asked, now=now, known=known)
        learner = self._models.learner()
        summary = self._summary(shown, versions, candidates, audit)
        console = answer.Console(
            at=now // 1000,
            minutes=minutes,
            events=self._tally.last,
            read=self._tally.share_read,
            summary=summary,
            series=self._series(shown, versions),
            versions=_by_version(versions),
            arms=arms,
            rewards=answer.Rewards(
                _delays(self._tally.delays(since=shown.since)), _statuses(statuses)
            ),
            candidates=candidates,
            audit=audit,
            learner=learner,
            serving=serving,
            notes={},
            shadow=self._shadow(shown, serving),
            latest=self._latest(),
        )
        assert self._connection is not None
        notes = Notes(self._connection, console, is_shared=self._is_shared).by_panel(statuses)
        return replace(console, notes=notes if note is None else {"log": note, **notes})

    def _latest(self) -> list[answer.LatestDecision]:
        assert self._connection is not None
        rows = ask(self._connection, _LATEST)
        return [
            answer.LatestDecision(id, at // 1000, version, json.decode(arms)[0])
            for id, at, version, arms in rows
        ]

    def _shadow(self, shown: _Range, serving: dict[str, Any]) -> answer.Shadow | None:
        shadow = serving.get("shadow")
        if shadow is None:
            return None
        evidence = self._tally.compared.evidence(since=shown.since, now=shown.now)
        return answer.Shadow(shadow["baseline"], shadow["decides"], shadow["command"], evidence)

    def _range(self, minutes: int | None, now: int) -> _Range:
        span = self._tally.span()
        first = now if span is None else span[0]
        since = first if minutes is None else now - minutes * 60 * SECOND
        width = _width_for(now - since)
        since -= since % width
        asked = 0 if minutes is None else since
        if self._tally.whole_since() > since:  # what is older is not read yet
            whole = min(self._tally.whole_since(), now)
            since = whole + -whole % width
        return _Range(asked, since, width, max(1, -(-(now + 1 - since) // width)), now)

    def _summary(
        self,
        shown: _Range,
        versions: dict[int, Sums],
        candidates: list[answer.Candidate],
        audit: answer.Audit | None,
    ) -> answer.Summary:
        whole = sum(versions.values(), _NONE)
        learned = sum((sums for version, sums in versions.items() if version > 0), _NONE)
        whole_since = self._tally.whole_since()
        baseline = self._tally.by_version(since=whole_since, now=shown.now).get(0, _NONE)
        current = next((one.version for one in candidates if one.is_current), None)
        return answer.Summary(
            decisions=whole.count,
            per_second=self._per_second(shown.now),
            reward=mean_of(whole),
            baseline=mean_of(baseline),
            difference=difference_of(learned, baseline),
            quality=None if audit is None else audit.quality,
            version=max(set(versions) - {BASELINE}, default=None) if current is None else current,
        )

    def _per_second(self, now: int) -> float:
        """Return the rate of decisions of about the last minute."""
        since = now - 60 * SECOND
        since -= since % (10 * SECOND)
        made = sum(self._tally.by_version(since=since, now=now).values(), _NONE)
        return made.count / ((now - since) / SECOND)

    def _series(self, shown: _Range, versions: dict[int, Sums]) -> answer.Series:
        whole, buckets = sum(versions.values(), _NONE), range(shown.count)
        given = {"since": shown.since, "now": shown.now, "width": shown.width}
        all = self._tally.by_bucket(**given)
        baseline = self._tally.by_bucket(**given, version=0)
        decisions = [all.get(n, _NONE).count for n in buckets]
        starts = [shown.since + n * shown.width for n in buckets]
        ends = [min(start + shown.width, max(shown.now, start + SECOND)) for start in starts]
        return answer.Series(
            starts=[start // 1000 for start in starts],
            width_s=shown.width / SECOND,
            decisions=decisions,
            per_second=[
                count * SECOND / (end - start)
                for count, start, end in zip(decisions, starts, ends, strict=True)
            ],
            reward=[mean_of(all.get(n, _NONE), around=whole) for n in buckets],
            baseline=[mean_of(baseline.get(n, _NONE), around=whole) for n in buckets],
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another that takes its name."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _width_for(span: int) -> int:
    """Return the narrowest width of which few enough buckets span a time."""
    for width in _WIDTHS_S:
        if span <= _MOST_BUCKETS * width * SECOND:
            return width * SECOND
    days = -(-span // (_MOST_BUCKETS * 86400 * SECOND))
    return days * 86400 * SECOND


def _known_arms(serving: dict[str, Any], candidates: list[answer.Candidate]) -> int:
    """Return how many arms there are: now, else in the current version, else 0 for not known."""
    current = next((one.arms for one in candidates if one.is_current), None)
    return int(serving.get("arms") or current or 0)


def _by_version(versions: dict[int, Sums]) -> list[answer.VersionMean]:
    whole = sum(versions.values(), _NONE)
    means = [(version, sums, mean_of(sums, around=whole)) for version, sums in versions.items()]
    return [
        answer.VersionMean(version, sums.count, mean)
        for version, sums, mean in means
        if mean and version != BASELINE
    ]


def _delays(counts: dict[int, int]) -> list[answer.DelayBin]:
    """Return the bins from the first to the last that has a reward."""
    if not counts:
        return []
    bounds: list[float | None] = [0.0, *DELAYS_S, None]
    return [
        answer.DelayBin(bounds[n] or 0.0, bounds[n + 1], counts.get(n, 0))
        for n in range(min(counts), max(counts) + 1)
    ]


def _statuses(counts: dict[str, int]) -> list[answer.StatusFigures]:
    whole = sum(counts.values())
    return [
        answer.StatusFigures(status, count, count / whole if whole else 0.0, RULES[status])
        for status in REWARD_STATUSES
        for count in [counts.get(status, 0)]
    ]
