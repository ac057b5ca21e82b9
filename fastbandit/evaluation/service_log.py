"""The log of a service as rounds: its decisions, joined with their rewards."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.errors import DataError, LogError, MissingExtraError
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.tables import LISTED, UNLIKELY, WAITING, left_out_notes, read_arms
from fastbandit.progress import Progress, silent

LEARNED = "the policy may have learned from"
_LEARNED_ALL = (
    "the policy has learned from these rounds, and there are none since: it looks better here than "
    "it is"
)


def read_service(
    folder: Path, *, arms: Path | None = None, after: int = 0, progress: Progress = silent
) -> LoggedRounds:
    """Read the decisions of a data folder whose reward and propensity are known.

    It ends before the first decision that still waits for its reward: of later ones, those that
    earned something are known sooner. Of a slate the first arm counts. The service may run
    meanwhile. `after` is the last event that the policy to judge has learned from: what came by
    then is left out, unless that is all there is.
    """
    used, left_out = _read(folder, after, progress)
    has_learned_all = after > 0 and not left_out[""]
    if has_learned_all:
        used, left_out = _read(folder, 0, progress)
    _check_any(left_out, folder)
    rounds = used.rounds(left_out, arms)
    return rounds.with_notes(_LEARNED_ALL) if has_learned_all else rounds


def _read(folder: Path, after: int, progress: Progress) -> tuple[_UsedRows, Counter[str]]:
    try:
        from fastbandit.storage.data_folder import LOG_FILE
        from fastbandit.storage.joined_rows import Bounds, count_decisions, joined_rows
        from fastbandit.storage.log_reader import one_moment_of
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The log of a service needs {error.name}, which is not installed. Run: pip install "
            f"'fastbandit[serve]'"
        ) from error
    used, left_out = _UsedRows(folder), Counter[str]()
    with one_moment_of(folder / LOG_FILE) as log:
        steps = count_decisions(log, Bounds())
        left_out[LEARNED] = count_decisions(log, Bounds(until=after + 1))
        for batch in joined_rows(log, Bounds(since=after + 1)):
            known = list(takewhile(lambda row: row.reward is not None, batch))
            reasons = [_why_not(row) for row in known]
            left_out.update(reasons)
            used.add([row for row, why in zip(known, reasons, strict=True) if not why])
            progress(left_out.total(), steps, "reading")
            if len(known) < len(batch):
                left_out[WAITING] = steps - left_out.total()
                break
    return used, left_out


class _UsedRows:
    """Columns that grow; contexts are packed a batch at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._schema: Any = None
        self._contexts: list[Any] = []
        self._taken: list[Any] = []
        self._numbers: list[tuple[float, float | None]] = []

    def add(self, rows: list[Any]) -> None:
        if rows and isinstance(rows[0].context, dict):
            self._add_named(rows)
            return
        widths = {len(row.context) for row in rows} | {part.shape[1] for part in self._contexts[:1]}
        if len(widths) > 1:
            raise DataError(
                "The log of a service needs contexts of one length: some decisions have another "
                "number of features. Export the time since they changed, with --since, to Parquet."
            )
        if rows:
            self._contexts.append(np.array([row.context for row in rows], dtype=np.float32))
        self._add_rest(rows)

    def _add_named(self, rows: list[Any]) -> None:
        """Encode contexts by name, with the schema of the version in service."""
        if self._schema is None:
            self._schema = _schema_of(self._folder)
        named = [row.context for row in rows]
        self._contexts.append(self._schema.encode(named, what="contexts"))
        self._add_rest(rows)

    def _add_rest(self, rows: list[Any]) -> None:
        self._taken += [row.arms[0] for row in rows]
        self._numbers += [(row.reward, _probability(row)) for row in rows]

    def rounds(self, left_out: Counter[str], arms: Path | None) -> LoggedRounds:
        ids, vectors = (None, None) if arms is None else read_arms(arms, "id")
        row_of = dict(zip(ids, range(len(ids)), strict=True)) if ids else {}
        rows = [row_of.setdefault(arm, len(row_of)) for arm in self._taken]
        if ids and len(row_of) > len(ids):
            raise DataError(
                f"{arms} needs every arm that was taken: {list(row_of)[len(ids)]!r} is not in it. "
                f"Add it, or leave out the table."
            )
        numbers = np.array(self._numbers, dtype=np.float64)
        return LoggedRounds(
            contexts=np.concatenate(self._contexts),
            chosen=np.array(rows),
            rewards=numbers[:, 0],
            propensities=numbers[:, 1],
            arms=len(row_of),
            vectors=vectors,
            ids=list(row_of),
            notes=left_out_notes(left_out),
        )


def _schema_of(folder: Path) -> Any:
    from fastbandit.runtime.frozen import FrozenBandit
    from fastbandit.storage.snapshot_store import SnapshotStore

    snapshot = SnapshotStore(folder / "snapshots").current()
    schema = None if snapshot is None else FrozenBandit.load(snapshot.frozen).parts[2].schema
    if schema is None:
        raise DataError(
            f"Contexts by name need the schema of the version in service: {folder} has none. "
            f"Restore its snapshots."
        )
    return schema


def _probability(row: Any) -> float | None:
    if row.propensities:
        return float(row.propensities[0])
    is_certain = row.decided_by == "bandit" and not (row.explored or row.epsilon)
    return 1.0 if is_certain else None


def _why_not(row: Any) -> str:
    if row.eligible is not None:
        return LISTED
    return UNLIKELY if _probability(row) is None else ""


def _check_any(left_out: Counter[str], folder: Path) -> None:
    if left_out[""]:
        return
    reasons = ", ".join(f"{count:,} {why}" for why, count in left_out.items() if why and count)
    raise LogError(
        f"An evaluation needs decisions with a reward and a propensity: {folder} has none ("
        f"{reasons or 'no decisions'}). Select with propensity: true, so that each decision says "
        f"how likely its arm was, and send the rewards, or wait until the time for them is over."
    )
