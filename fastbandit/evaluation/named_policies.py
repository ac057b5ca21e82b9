"""What --policy names: uniform, one arm, a saved bandit, or the current snapshot of a service."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.errors import DataError, SettingError, SnapshotError
from fastbandit.evaluation.drawn_policies import schema_of
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.evaluation.tables import UNTAKEN
from fastbandit.files.manifest import kind_in
from fastbandit.runtime.folder import KIND as FROZEN
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot

SNAPSHOTS = "snapshots"
_MOST_ARMS = 2**20  # more are not taken over: their ids alone would fill the memory
_MAY_HAVE_LEARNED = (
    "the policy is that of a service, and may have learned from these rounds: if so, it looks "
    "better here than it is"
)
_TAKEN_OVER = "arms, and what describes them, are those of the snapshot"
_NO_FEATURES = (
    "what describes the arms is not known, so the model of the reward knows each by itself: name a "
    "table of them with --arms"
)


def is_plain(named: str) -> bool:
    """Return whether a policy is no bandit: it has no draws, and learned nothing."""
    return named == "uniform" or named.startswith("arm:")


def load_bandit(named: str) -> Any:
    if is_plain(named):
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"A policy needs to be 'uniform', 'arm:ID' or a folder: got {str(folder)!r}, and there "
            f"is no such folder. Save a bandit with save(), or name a service's data folder."
        )
    snapshot = snapshot_of(folder)
    folder = folder if snapshot is None else snapshot.frozen
    if kind_in(folder) == FROZEN:
        return FrozenBandit.load(folder)
    from fastbandit.bandit import Bandit

    return Bandit.load(folder)


def load_policy(
    named: str, rounds: LoggedRounds, *, log: str, bandit: Any = None
) -> tuple[LoggedRounds, Any]:
    """Return what --policy names, and the rounds, among all arms where it knows them.

    Else arms are those of the service whose data folder is the log, if they can be had. A
    `bandit` was loaded before.
    """
    policy = load_bandit(named) if bandit is None else bandit
    learned = None if is_plain(named) else snapshot_of(Path(named).expanduser())
    if learned is not None and learned.cut.interactions and not learned_until(named, log):
        rounds = rounds.with_notes(_MAY_HAVE_LEARNED)  # nothing says that its log was another
    if rounds.vectors is None:
        decider = policy if isinstance(policy, FrozenBandit) else None
        with suppress(DataError, SnapshotError):  # of a service, where the log is its data folder
            snapshot = None if decider is not None else snapshot_of(Path(log).expanduser())
            decider = decider if snapshot is None else FrozenBandit.load(snapshot.frozen)
        found = rounds if decider is None else with_arms_of(rounds, decider)
        rounds = found.with_notes(_NO_FEATURES) if found is rounds else found
    if named.startswith("arm:"):
        text, first = named.removeprefix("arm:"), rounds.ids[0] if rounds.ids else 0
        is_number = isinstance(first, int) and text.lstrip("-").isdigit()  # as the log's ids are
        policy = SparsePolicy.fixed(rounds, int(text) if is_number else text)
    return rounds, named if policy is None else policy


def with_arms_of(rounds: LoggedRounds, bandit: FrozenBandit) -> LoggedRounds:
    """Return the same rounds among all arms of a bandit, with their coordinates as features.

    Rounds stay as they are where they have features, where the bandit knows arms by ids alone or
    has too many, and where some arm that was taken is none of its arms now.
    """
    _, catalogue, codec = bandit.parts
    is_fitting = codec.arm.is_compiled and len(catalogue) <= _MOST_ARMS
    if rounds.vectors is not None or rounds.ids is None or not is_fitting:
        return rounds
    rows, live = catalogue.rows.live_rows_of(list(rounds.ids)), catalogue.rows.live_rows
    if (rows < 0).any():
        return rounds
    return replace(
        rounds,
        chosen=np.searchsorted(live, rows)[rounds.chosen],
        ids=catalogue.ids.ids(live),
        arms=len(catalogue),
        vectors=catalogue.points_of(live),
        notes=(*(note for note in rounds.notes if note != UNTAKEN), _TAKEN_OVER),
    )


def snapshot_of(folder: Path) -> Snapshot | None:
    """Return the snapshot that a service decides by; None of a folder that is no service's."""
    if not (folder / LOG_FILE).exists() and not (folder / SNAPSHOTS).is_dir():
        return None
    current = SnapshotStore(folder / SNAPSHOTS).current()
    if current is None:
        raise DataError(
            f"A policy needs a snapshot: {folder} has none yet. Let the service start, or name a "
            f"saved bandit."
        )
    return current


def learned_until(named: str, log: str) -> int:
    """Return the number of the last event that a service's snapshot learned from, 0 for none.

    It is of the log of that service alone: the one in its folder, or a copy that lies there.
    """
    folder, path = Path(named).expanduser().resolve(), Path(log).expanduser().resolve()
    is_service = path.name == LOG_FILE or (path / LOG_FILE).exists()
    is_its_own = not is_plain(named) and is_service and folder in (path, *path.parents)
    snapshot = snapshot_of(folder) if is_its_own else None
    return 0 if snapshot is None or not snapshot.cut.interactions else snapshot.cut.seq


def check_columns(policy: Any, rounds: LoggedRounds, *, given: Collection[str]) -> None:
    """Reject a bandit without a schema where one was inferred from what this log happens to hold.

    Columns whose kinds are `given` mean what they did when it learned.
    """
    is_bandit = policy is not None and schema_of(policy) is None
    if not is_bandit or rounds.schema is None:
        return
    column = next((name for name in rounds.schema.spans if name not in given), None)
    if column is not None:
        raise SettingError(
            f"A bandit without a schema needs contexts that mean what they did when it learned: "
            f"what {column!r} means was inferred from this log. Learn one by name (`fastbandit "
            f"learn --log`, or Bandit(context=frame)), or name columns of numbers with --context."
        )
