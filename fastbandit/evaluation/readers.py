"""Logs as LoggedRounds: a service's data folder, Parquet, CSV, DSJSON, the Open Bandit files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastbandit.errors import DataError, SettingError
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.progress import Progress, silent

_TABLES = (".parquet", ".csv", ".csv.gz")
_LINES = (".dsjson", ".json", ".jsonl", ".ndjson", ".dsjson.gz", ".json.gz", ".jsonl.gz")
SERVICE_LOG = "events.db"


def read_rounds(
    path: str | Path,
    *,
    context: str | Sequence[str] = (),
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    arms: str | Path | None = None,
    is_text: bool = False,
    progress: Progress = silent,
) -> LoggedRounds:
    """Read a log: which kind it is tells its name, or what the folder holds.

    Columns of a Parquet or CSV file can be named; "x_*" stands for all that start with x_. Those
    of DSJSON's contexts can be named as `fastbandit.adapters.vowpal_wabbit` does.
    `arms` is a table of all arms that could be taken: their ids in a column of the same name,
    features in all others. Ids are taken as text where `is_text`.
    """
    place = Path(path).expanduser()
    _check_named(place, arm=arm, reward=reward, propensity=propensity)
    if (place / SERVICE_LOG).exists() or place.name == SERVICE_LOG:
        from fastbandit.evaluation.service_log import read_service

        folder = place.parent if place.name == SERVICE_LOG else place
        return read_service(folder, arms=arms, progress=progress)
    if (place / "item_context.csv").exists():
        from fastbandit.evaluation.open_bandit import read_campaign

        return read_campaign(place).rounds
    if not place.exists():
        raise DataError(
            f"A log needs a file or folder that exists: found no {place}. Mend the path; it is "
            f"the first argument, before the policy."
        )
    if place.name.endswith(_TABLES):
        from fastbandit.evaluation.tables import read_table

        return read_table(
            place,
            context=[context] if isinstance(context, str) else context,
            arm=arm,
            reward=reward,
            propensity=propensity,
            arms=None if arms is None else Path(arms),
            is_text=is_text,
        )
    if place.name.endswith(_LINES):
        from fastbandit.evaluation.dsjson_log import read_lines

        return read_lines(
            place,
            context=[context] if isinstance(context, str) else context,
            arms=None if arms is None else Path(arms),
            is_text=is_text,
            progress=progress,
        )
    raise DataError(
        f"A log needs to be a service's data folder (with {SERVICE_LOG}), an Open Bandit folder "
        f"(with item_context.csv), or a file that ends in {', '.join((*_TABLES, *_LINES[:3]))}: "
        f"got {place}. Export or rename it."
    )


def _check_named(place: Path, **columns: str | None) -> None:
    """Refuse columns of what has none, rather than read others."""
    named = {name: column for name, column in columns.items() if column is not None}
    if named and place.exists() and not place.name.endswith(_TABLES):
        name, column = next(iter(named.items()))
        raise SettingError(
            f"A column {name}= needs a table, in Parquet or CSV: got {column!r} for {place}, whose "
            f"fields have their names. Leave it out."
        )
