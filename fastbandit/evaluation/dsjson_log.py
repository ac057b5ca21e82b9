"""DSJSON lines as rounds, read by the adapter for Vowpal Wabbit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.adapters.dsjson_lines import NO_LABEL
from fastbandit.adapters.vowpal_wabbit import DsjsonLog, read_dsjson
from fastbandit.errors import DataError
from fastbandit.evaluation.log_columns import LogColumns
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.tables import read_arms, rows_of
from fastbandit.progress import Progress, silent


def read_lines(
    path: Path, asked: LogColumns, *, arms: Path | None = None, progress: Progress = silent
) -> LoggedRounds:
    """Read decisions with their labels; ids that all are whole numbers become numbers.

    The context has the columns asked for, by default all that the lines have. `arms` is a table
    of all arms; without one, arms are those that some line offers.
    """
    if asked.schema is not None:
        raise DataError(
            f"A bandit with a schema needs contexts by name: {path} is DSJSON, which has neither "
            f"gaps nor dates. Name a data folder, or `fastbandit export --format parquet`."
        )
    log = read_dsjson(path, columns=asked.context or None, progress=progress)
    if not len(log):
        why_not = ", ".join(f"{count:,} have {why}" for why, count in log.left_out.items())
        raise DataError(
            f"{path} needs lines with a context, actions and a label: it has none "
            f"({why_not or 'no lines'}). Export decisions with `fastbandit export --format dsjson`."
        )
    if asked.context and not log.contexts.any():
        raise DataError(
            f"{path} needs contexts with the columns that were named: no line has any of "
            f"{', '.join(log.columns[:4])}. Name them as read_dsjson does, such as 'User.age'."
        )
    are_numbers = all(id.removeprefix("-").isdecimal() and str(int(id)) == id for id in log.ids)
    kind = int if are_numbers and not asked.is_text else str
    ids: list[Any] = [kind(id) for id in log.ids]
    vectors = log.features if log.feature_columns else None
    if arms is not None:
        ids, vectors = read_arms(arms, "id", is_text=kind is str)
        kind = str if isinstance(ids[0], str) else kind
    known, chosen = rows_of(np.array([kind(arm) for arm in log.arms]), ids, arms)
    return LoggedRounds(
        contexts=log.contexts if log.columns else np.zeros((len(log), 1)),
        chosen=chosen,
        rewards=log.rewards,
        propensities=log.propensities,
        vectors=vectors,
        ids=known,
        notes=_notes(log),
    )


def _notes(log: DsjsonLog) -> tuple[str, ...]:
    notes = [f"lines with {why} are left out ({count:,})" for why, count in log.left_out.items()]
    if NO_LABEL in log.left_out:
        notes.append("where no label means that nothing was earned, write a cost of 0 instead")
    if any(set(offered) != set(log.ids) for offered in log.eligible):
        notes.append("each arm of any line is taken to have been eligible in every line")
    return tuple(notes)
