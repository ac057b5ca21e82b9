"""Logs as LoggedRounds: a service's, in a folder or shared, Parquet, CSV, DSJSON, Open Bandit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from fastbandit.errors import DataError, MissingExtraError, SettingError
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.progress import Progress, silent
from fastbandit.settings.passwords import hide_password
from fastbandit.storage.data_folder import data_folder
from fastbandit.storage.log_file import LOG_FILE

TABLES = (".parquet", ".csv", ".csv.gz")
_LINES = (".dsjson", ".json", ".jsonl", ".ndjson", ".dsjson.gz", ".json.gz", ".jsonl.gz")
_SHARED = ("postgresql://", "postgres://")


def read_rounds(
    path: str | Path,
    *,
    context: str | Sequence[str] = (),
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    arms: str | Path | None = None,
    is_text: bool = False,
    levels: Mapping[str, Sequence[str]] | None = None,
    after: int = 0,
    progress: Progress = silent,
) -> LoggedRounds:
    """Read a log: which kind it is tells its name, or what the folder holds.

    One that services share is named by its URL, and copied first: into the folder of datasets,
    where the next time goes on.
    Columns of a Parquet or CSV file can be named; "x_*" stands for all that start with x_. Those
    of DSJSON's contexts can be named as `fastbandit.adapters.vowpal_wabbit` does.
    `arms` is a table of all arms that could be taken: their ids in a column of the same name,
    features in all others. Ids are taken as text where `is_text`. Texts of a table's columns are
    flags, one for each of its `levels`, by default those that the file holds. Of a service's log,
    decisions `after` an event are read where there are any.
    """
    notes: list[str] = []
    if str(path).startswith(_SHARED):
        path = _copied(str(path), notes, progress)
    place = Path(path).expanduser()
    named = {"arm": arm, "reward": reward, "propensity": propensity}
    _check_named(place, **named, levels=", ".join(levels) if levels else None)
    if (place / LOG_FILE).exists() or place.name == LOG_FILE:
        from fastbandit.evaluation.service_log import read_service

        folder = place.parent if place.name == LOG_FILE else place
        rounds = read_service(folder, arms=arms, after=after, progress=progress)
        return replace(rounds, notes=(*notes, *rounds.notes))
    if (place / "item_context.csv").exists():
        from fastbandit.evaluation.open_bandit import read_campaign

        return read_campaign(place).rounds
    if not place.exists():
        raise DataError(
            f"A log needs a file or folder that exists: found no {place}. Mend the "
            f"path, or name a service's data folder."
        )
    if place.name.endswith(TABLES):
        from fastbandit.evaluation.tables import read_table

        return read_table(
            place,
            context=[context] if isinstance(context, str) else context,
            arm=arm,
            reward=reward,
            propensity=propensity,
            arms=None if arms is None else Path(arms),
            is_text=is_text,
            levels=levels or {},
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
        f"A log needs to be a service's data folder (with {LOG_FILE}), an Open Bandit folder "
        f"(with item_context.csv), or a file that ends in {', '.join((*TABLES, *_LINES[:3]))}: "
        f"got {place}. Save or export it as one of these."
    )


def _copied(url: str, notes: list[str], progress: Progress) -> Path:
    """Give a copy of a shared log, in a folder of its own."""
    try:
        from fastbandit.storage.local_copy import local_copy
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The log of a service needs {error.name}, which is not installed. Run: pip install "
            f"'fastbandit[serve,postgres]'"
        ) from error
    folder = data_folder(None) / "logs" / sha256(hide_password(url).encode()).hexdigest()[:16]
    return local_copy(url, folder, warn=notes.append, progress=progress)


def _check_named(place: Path, **columns: str | None) -> None:
    """Refuse columns of what has none, rather than read others."""
    named = {name: column for name, column in columns.items() if column is not None}
    if named and place.exists() and not place.name.endswith(TABLES):
        name, column = next(iter(named.items()))
        raise SettingError(
            f"--{name} ({name}= in Python) needs a table, in Parquet or CSV: got {column!r} for "
            f"{place}, whose fields have their names. Leave it out."
        )
