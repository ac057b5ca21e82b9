"""Kept rows: one short line a run, in the repository, so that seeds add up over sessions.

A row is a result file without what no table shows, its numbers with six digits; a note of a dataset
stands in the first of its rows alone. Only runs of committed code are kept.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from fastbandit import __version__
from fastbandit.errors import DataError
from lab.experiments.results import FORMAT, REAL_FACES, Key, code_commit, write_beside

Row = dict[str, Any]

_NAMES = ("kind", "dataset", "options", "preset", "policy", "rounds", "batch", "device", "machine")
_LEFT_OUT = ("format", "qualities", "curve", "settings", "seconds")
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


def not_kept(path: Path | None, keys: Sequence[Key]) -> list[Key]:
    """Return the runs of which a file has no row of this version; code needs to be committed."""
    if path is None:
        return list(keys)
    _check_committed(code_commit())
    rows = read_rows(path) if path.exists() else []
    made = {_name(row) for row in rows if row.get("version") == __version__}
    kinds = ("play", "replay", "training")
    return [key for key in keys if made.isdisjoint(_name(asdict(key) | {"kind": k}) for k in kinds)]


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
    return json.dumps([*(result.get(name) for name in _NAMES), seed], sort_keys=True)


def _lines(rows: Sequence[Row]) -> Iterable[str]:
    told: set[str] = set()
    for row in rows:
        short = {name: _rounded(v) for name, v in row.items() if name not in _LEFT_OUT}
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
