"""Logs as LoggedRounds: a service's, in a folder or shared, Parquet, CSV, DSJSON, Open Bandit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError, SettingError
from fastbandit.evaluation.log_columns import LogColumns
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.features.schema import Schema
from fastbandit.features.table_files import TABLES
from fastbandit.packages import missing
from fastbandit.progress import Progress, silent
from fastbandit.settings.passwords import hide_password
from fastbandit.storage.data_folder import LOG_FILE, data_folder

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
    schema: Schema | Mapping[str, Any] | None = None,
) -> LoggedRounds:
    """Read a log: its name says which kind it is, or what the folder holds.

    One that services share is named by its URL, and copied first: into the folder of datasets,
    where the next time goes on.
    Columns of a Parquet or CSV file can be named; "x_*" stands for all that start with x_. Those
    of DSJSON's contexts can be named as `fastbandit.adapters.vowpal_wabbit` does.
    `arms` is a table of all arms that could be taken: their ids in a column of the same name,
    features in all others. Ids are taken as text where `is_text`. Columns of a table that are all
    numbers are the context as they are; else a `schema` says what they mean, by default one that
    is inferred, which kinds by name correct: schema={"city": "category"}.
    """
    named = [context] if isinstance(context, str) else context
    columns = LogColumns(
        context=named,
        arm=arm,
        reward=reward,
        propensity=propensity,
        is_text=is_text,
        schema=schema if isinstance(schema, Schema) else None,
        kinds={} if schema is None or isinstance(schema, Schema) else schema,
    )
    return read_log(path, columns, arms=arms)


def read_log(
    path: str | Path,
    columns: LogColumns | None = None,
    *,
    arms: str | Path | None = None,
    after: int = 0,
    progress: Progress = silent,
) -> LoggedRounds:
    """Read a log as `read_rounds` does; of a service's, decisions `after` an event if there are."""
    columns, notes = columns or LogColumns(), list[str]()
    if str(path).startswith(_SHARED):
        try:
            from fastbandit.storage.local_copy import local_copy
        except ModuleNotFoundError as error:
            name = error.name or ""
            raise missing(name, what="The log of a service", extra="serve,postgres") from error
        name = sha256(hide_password(str(path)).encode()).hexdigest()[:16]
        folder = data_folder(None) / "logs" / name
        path = local_copy(str(path), folder, warn=notes.append, progress=progress)
    found = Path(path).expanduser()
    table = None if arms is None else Path(arms)
    _check_named(found, columns)
    if (found / LOG_FILE).exists() or found.name == LOG_FILE:
        from fastbandit.evaluation.service_log import read_service

        folder = found.parent if found.name == LOG_FILE else found
        rounds = read_service(folder, arms=table, after=after, progress=progress)
        return replace(rounds, notes=(*notes, *rounds.notes))
    if (found / "item_context.csv").exists():
        from fastbandit.evaluation.open_bandit import read_campaign

        return read_campaign(found)
    if not found.exists():
        raise DataError(
            f"A log needs a file or folder that exists: found no {found}. Mend the "
            f"path, or name a service's data folder."
        )
    if found.name.endswith(TABLES):
        from fastbandit.evaluation.tables import read_table

        return read_table(found, columns, arms=table)
    if found.name.endswith(_LINES):
        from fastbandit.evaluation.dsjson_log import read_lines

        return read_lines(found, columns, arms=table, progress=progress)
    raise DataError(
        f"A log needs to be a service's data folder (with {LOG_FILE}), an Open Bandit folder "
        f"(with item_context.csv), or a file that ends in {', '.join((*TABLES, *_LINES[:3]))}: "
        f"got {found}. Save or export it as one of these."
    )


def _check_named(path: Path, columns: LogColumns) -> None:
    """Raise where columns are named of what has none, rather than read others."""
    named = {name: getattr(columns, name) for name in ("arm", "reward", "propensity")}
    named["kind"] = ", ".join(columns.kinds) or None
    wrong = next(((name, column) for name, column in named.items() if column is not None), None)
    if wrong is not None and path.exists() and not path.name.endswith(TABLES):
        name, column = wrong
        raise SettingError(
            f"--{name} ({name}= in Python) needs a table, in Parquet or CSV: got {column!r} for "
            f"{path}, whose fields have their names. Leave it out."
        )
