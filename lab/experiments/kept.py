"""Kept rows: one short line a run, in the repository, so that seeds add up over sessions.

A row is a result file without what no table shows, its numbers with six digits; a note of a dataset
stands in the first of its rows alone. Only runs of committed code are kept. Rows are of
experiments, or of sets that systems played (`lab.bakeoff`), which have a file of their own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from fastbandit import __version__
from fastbandit.errors import DataError
from lab.experiments.results import FORMAT, REAL_FACES, code_commit, write_beside

Row = dict[str, Any]
Job = TypeVar("Job")

_NAMES = ("kind", "dataset", "options", "preset", "policy", "rounds", "batch", "device", "machine")
_NAMES_OF_SETS = ("kind", "set", "rounds", "batch", "system")
_LEFT_OUT = ("format", "qualities", "curve", "settings", "seconds")
_LEFT_OUT_OF_SETS = ("earned", "best", "played", "cpu_seconds", "warm_cpu_seconds")
_DIGITS = 6


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file as results; a damaged line is named."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The kept rows {path} cannot be read: {error}.") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"Line {number} of {path} is damaged: {error}. Remove it.") from error
        if not isinstance(row, dict):
            raise DataError(f"Line {number} of {path} needs to be an object: got {line[:40]}.")
        rows.append({"format": FORMAT, **row})
    return rows


def keep_rows(path: Path | None, results: Iterable[Mapping[str, Any]]) -> None:
    """Add results to the rows of a file, if one is named."""
    if path is None:
        return
    fresh = list(results)
    for result in fresh:
        _check(result)
    rows = newest([*(read_rows(path) if path.exists() else ()), *fresh])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, "".join(f"{line}\n" for line in _lines(rows)))


def newest(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return one result for each run, in order: that of the newer code, of two the later one."""
    found: dict[str, Row] = {}
    for result in results:
        before = found.get(name := _name(result))
        if before is None or not _is_before(result.get("commit"), before.get("commit")):
            found[name] = dict(result)
    return [found[name] for name in sorted(found)]


def not_kept(
    path: Path | None,
    jobs: Sequence[Job],
    *,
    key_of: Callable[[Job], Any] = lambda job: job,
    is_retried: bool = False,
) -> list[Job]:
    """Return the runs of which a file has no row of this version; code needs to be committed.

    With `is_retried` a row of a run that failed does not count.
    """
    if path is None or not jobs:
        return list(jobs)
    _check_committed(code_commit())
    rows = [row for row in (read_rows(path) if path.exists() else ()) if _is_new(row)]
    made = {_name(row) for row in rows if not (is_retried and row.get("error"))}
    return [job for job in jobs if made.isdisjoint(_names_of(asdict(key_of(job))))]


def _is_new(row: Mapping[str, Any]) -> bool:
    return row.get("version") == __version__


def _names_of(key: Row) -> list[str]:
    return [_name(key | {"kind": kind}) for kind in ("play", "replay", "training", "bakeoff")]


def _check_committed(commit: str | None) -> None:
    if commit is None or commit.endswith("-dirty"):
        raise DataError(
            f"Rows are kept of committed code only: got the commit {commit}. Commit what changed "
            f"in fastbandit and lab, and run it again."
        )


def _check(result: Mapping[str, Any]) -> None:
    if result.get("settings") is not None:
        raise DataError(
            f"Rows are kept of presets that have names: got the settings {result['preset']}, a "
            f"file that may change. Report its result files instead."
        )
    _check_committed(result.get("commit"))


def _name(result: Mapping[str, Any]) -> str:
    """Return what tells a run from others; sorted by it, rows are in order."""
    seed = f"{result.get('seed') or 0:06}"
    names = _NAMES_OF_SETS if "set" in result else _NAMES
    return json.dumps([*(result.get(name) for name in names), seed], sort_keys=True)


def _lines(rows: Sequence[Row]) -> Iterable[str]:
    told: set[str] = set()
    for row in rows:
        left_out = _LEFT_OUT + (_LEFT_OUT_OF_SETS if "set" in row else ())
        short = {name: _rounded(v) for name, v in row.items() if name not in left_out}
        where = json.dumps([row.get("dataset"), row.get("options")], sort_keys=True)
        notes = [n for n in row.get("notes") or () if n == REAL_FACES or where + n not in told]
        told |= {where + note for note in notes}
        short.pop("notes", None)
        short |= {"notes": notes} if notes else {}
        yield json.dumps(short, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    return [_rounded(each) for each in value] if isinstance(value, list) else value


@cache
def _is_before(one: str | None, two: str | None) -> bool:
    """Return whether a commit is known to be older than another."""
    if not one or not two or one == two:
        return False
    command = ["git", "-C", str(Path(__file__).parent), "merge-base", "--is-ancestor", one, two]
    return subprocess.run(command, capture_output=True).returncode == 0
