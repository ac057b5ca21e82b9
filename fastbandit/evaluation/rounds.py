"""LoggedRounds: what a policy decided, how likely that was, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import IdTable
from fastbandit.errors import InputError, NotFiniteError, ShapeError, UnknownArmError
from fastbandit.features.kinds import to_floats
from fastbandit.features.schema import Schema

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_FIELDS = ("contexts", "chosen", "rewards", "propensities")


@dataclass(frozen=True, eq=False)
class LoggedRounds:
    """Rounds of a log as columns: a context, the row of the arm taken, its reward.

    `propensities` are the probabilities with which the logging policy took the arms it took.
    `arms` is the number of arms that could be taken, by default one more than the highest row;
    `vectors` are their features. `ids` are their names, in the order of their rows (those after
    the last name have none); without, rows are names. `schema` says what made the numbers of the
    contexts, where they came with names and were not all numbers. `notes` say what was left out.
    """

    contexts: Any  # (n, C) float32 once made
    chosen: Any  # (n,) int64
    rewards: Any  # (n,) float64
    propensities: Any  # (n,) float64
    arms: int = 0
    vectors: Any = None  # (N, D) float32
    ids: Sequence[Hashable] | None = None
    notes: tuple[str, ...] = field(default=())
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if self.propensities is None:
            raise InputError(
                "The propensities need a probability for each round: got None. Log how likely each "
                "chosen arm was; if every arm was equally likely, give 1 / arms for each round."
            )
        made = {
            "contexts": _read_features(self.contexts, "contexts"),
            "chosen": _read_rows(self.chosen),
            "rewards": _read_column(self.rewards, "rewards"),
            "propensities": _read_column(self.propensities, "propensities"),
            "vectors": None if self.vectors is None else _read_features(self.vectors, "vectors"),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        _check_lengths(self)
        lists = (given for given in (self.ids, self.vectors) if given is not None)
        known = max(self.arms, 0, *map(len, lists))
        object.__setattr__(self, "arms", int(known) or int(self.chosen.max()) + 1)
        _check_arms(self)
        check_rewards(self.rewards)
        check_propensities(self.propensities, self.rewards)

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def is_uniform(self) -> bool:
        """Whether every arm was equally likely in every round."""
        return bool(np.allclose(self.propensities, 1.0 / self.arms, rtol=1e-6, atol=0.0))

    def rows_of(self, ids: Sequence[Any], *, what: str) -> Rows:
        """Find the rows of arms named by their ids."""
        table = IdTable(self.ids, count=None if self.ids is not None else self.arms)
        try:
            return table.rows(ids)
        except UnknownArmError as error:
            raise UnknownArmError(
                f"{what} needs arms that the log knows: {error.args[0]} Read the log with "
                f"--arms (arms= in Python), a table of all arms that could be taken."
            ) from error

    def with_more_arms(self, ids: Sequence[Hashable], *, arms: int = 0) -> LoggedRounds:
        """Return the same rounds among more arms, which were never taken."""
        known = dict.fromkeys(self.ids if self.ids is not None else range(self.arms))
        named = list(known | dict.fromkeys(ids))
        return replace(self, ids=named, arms=max(self.arms, len(named), arms))

    def with_notes(self, *notes: str) -> LoggedRounds:
        """Return the same rounds with more to say of them."""
        return replace(self, notes=(*self.notes, *notes))


# -- reading columns


def _read_features(values: Any, what: str) -> NDArray[np.float32]:
    array = to_floats(values, what=what)
    if array.ndim != 2:
        raise ShapeError(
            f"The {what} need the shape (n, d): got {array.shape}. Give one row of numbers each; "
            f"a column of zeros stands for nothing known."
        )
    return array


def _read_rows(values: Any) -> Rows:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ShapeError(
            f"The chosen arms need the shape (n,): got {array.shape}. Give one row for each round; "
            f"of a slate, the first."
        )
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        shown = array[:1].tolist()
        raise InputError(
            f"The chosen arms need to be rows, whole numbers from 0 on: got {shown} of "
            f"{array.dtype}. Give the position of each arm in the table of arms; the order is "
            f"LoggedRounds({', '.join(_FIELDS)})."
        )
    return array.astype(np.int64)


def _read_column(values: Any, what: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The {what} need to be numbers: got {type(values).__name__} such as "
            f"{np.asarray(values, dtype=object).reshape(-1)[:1].tolist()}. Turn them into numbers."
        ) from error
    if array.ndim != 1:
        raise ShapeError(
            f"The {what} need the shape (n,): got {array.shape}. Give one number for each round."
        )
    return array


# -- checks


def _check_lengths(rounds: LoggedRounds) -> None:
    lengths = {name: len(getattr(rounds, name)) for name in _FIELDS}
    if len(set(lengths.values())) > 1:
        came = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise ShapeError(
            f"A log needs one context, arm, reward and propensity for each round: got {came}. "
            f"Drop the rounds that lack one."
        )
    if not len(rounds.chosen):
        raise ShapeError("A log needs at least one round: got none. Give one with rounds.")


def _check_arms(rounds: LoggedRounds) -> None:
    wrong = rounds.chosen[(rounds.chosen < 0) | (rounds.chosen >= rounds.arms)]
    if len(wrong):
        raise UnknownArmError(
            f"The chosen arms need to be rows from 0 to {rounds.arms - 1}: got {wrong[0]} "
            f"({len(wrong)} such). Give the number of all arms that could be taken as arms=."
        )
    if rounds.vectors is not None and len(rounds.vectors) != rounds.arms:
        raise ShapeError(
            f"The vectors need one row for each of the {rounds.arms} arms: got "
            f"{len(rounds.vectors)}. Give the features of all arms that could be taken."
        )


def _round(row: int) -> str:
    return f"round {row}, counted from 0"


def check_rewards(rewards: Floats, *, where: Callable[[int], str] = _round) -> None:
    """Raise where a reward is no number; `where` names a round, counted from 0."""
    wrong = np.flatnonzero(~np.isfinite(rewards))
    if len(wrong):
        raise NotFiniteError(
            f"The rewards need to be finite: got {rewards[wrong[0]]} in {where(int(wrong[0]))} "
            f"({len(wrong)} such). Drop the rounds whose reward is not known; where no reward "
            f"means none was earned, put 0."
        )


def check_propensities(
    propensities: Floats, rewards: Floats, *, where: Callable[[int], str] = _round
) -> None:
    """Raise where a propensity is no probability; `where` names a round, counted from 0."""
    wrong = np.flatnonzero(~((propensities > 0.0) & (propensities <= 1.0)))
    if not len(wrong):
        return
    worst = float(propensities[wrong[0]])
    raise InputError(
        f"The propensities need to be above 0 and at most 1: got {worst:g} in "
        f"{where(int(wrong[0]))} ({len(wrong)} such). {_how_to_mend(worst, propensities, rewards)}"
    )


def _how_to_mend(worst: float, propensities: Floats, rewards: Floats) -> str:
    if np.isin(propensities, (0.0, 1.0)).all() and ((rewards > 0.0) & (rewards <= 1.0)).all():
        return "Rewards and propensities seem to have changed places: swap them."
    if np.isnan(worst):
        return "Drop the rounds whose propensity was not logged."
    if worst > 1.0:
        return "Divide percentages by 100; of densities or weights, give the probability."
    if worst < 0.0:
        return "Give probabilities, not their logarithms."
    return "An arm that was taken had some probability: log that one, or drop those rounds."
