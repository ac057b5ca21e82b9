"""The policy shape and the `bandit_feedback` dictionary of the Open Bandit Pipeline (obp).

Actions there are numbers from 0 on: the rows of the catalogue.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.waiting import Waiting, numbers_of
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import ArmIds
from fastbandit.bandit import Bandit
from fastbandit.errors import InputError, SettingError, ShapeError, UnknownArmError
from fastbandit.features.kinds import to_array, to_floats
from fastbandit.noise.philox import decision_seeds
from fastbandit.runtime.propensity import propensity_seeds

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_MOST_BYTES = 2**30
_AT_ONCE = 4_096  # draws of one call: bounds memory
_NEEDED = ("action", "reward", "context")


class ObpPolicy:
    """A `Bandit` in the shape of obp's contextual policies, for its simulators.

    Learns when `batch_size` interactions wait, later when a fifth of those learned do.
    """

    def __init__(self, bandit: Bandit, *, len_list: int = 1, batch_size: int = 100) -> None:
        self.bandit, self.len_list, self.batch_size = bandit, len_list, batch_size
        self.n_actions = len(_table_of(bandit))
        self.n_trial = 0
        if not 1 <= len_list <= len(bandit):
            raise SettingError(
                f"len_list needs to be between 1 and the {len(bandit)} arms: got {len_list!r}. "
                f"Use 1 for one action at a time."
            )
        self._first = copy.copy(bandit)  # its state is replaced, never changed
        self._waiting = Waiting(batch_size, reward=bandit.blueprint.reward)

    @property
    def policy_type(self) -> Any:
        """What obp knows contextual policies by: its own constant where it is installed."""
        try:
            return import_module("obp.policy.policy_type").PolicyType.CONTEXTUAL
        except ImportError:
            return "contextual"

    @property
    def dim(self) -> int:
        """The number of features of a context."""
        return int(getattr(self.bandit.blueprint.context, "dim", 1))

    def initialize(self) -> None:
        """Forget all that was learned since the policy was made."""
        self.bandit, self.n_trial = copy.copy(self._first), 0
        self._waiting = Waiting(self.batch_size, reward=self.bandit.blueprint.reward)

    def select_action(self, context: Any) -> Rows:
        """Choose actions (len_list) for one context of shape (1, dim)."""
        decision = self.bandit.select(context, k=self.len_list)
        if len(decision) != 1:
            raise ShapeError(
                f"A context needs the shape (1, {self.dim}): got {len(decision)} rows. Give one "
                f"context at a time."
            )
        return decision.rows[0]

    def update_params(self, action: int, reward: float, context: Any) -> None:
        """Learn from the reward of an action, once enough of them wait."""
        (row,) = _whole([action], what="action").tolist()
        if not 0 <= row < self.n_actions:
            raise UnknownArmError(
                f"An action needs to be a number from 0 to {self.n_actions - 1}: got {action!r}. "
                f"Give the row of the arm."
            )
        id = _table_of(self.bandit).id(row)
        self._waiting.add(numbers_of(context, self.bandit).reshape(-1), id, reward)
        self.n_trial += 1
        if self._waiting.is_due:
            self._waiting.train(self.bandit)

    def action_dist(
        self, contexts: Any, *, draws: int = 100, seed: int = 0, most_bytes: int = _MOST_BYTES
    ) -> Floats:
        """Return the dense array (rounds, actions, len_list) that estimators of obp read.

        Each number is the share of the draws in which an action had that position. An array of
        more than `most_bytes` is rejected.
        """
        rows = numbers_of(contexts, self.bandit)
        wanted = len(rows) * self.n_actions * self.len_list * 8
        if wanted > most_bytes:
            raise SettingError(
                f"A dense action_dist needs {wanted / 1e9:,.1f} GB here, and at most "
                f"{most_bytes / 1e9:,.1f} GB may be used. Ask for fewer contexts, raise "
                f"most_bytes, or evaluate with fastbandit, whose policies are sparse."
            )
        propensity_seeds(seed, draws)  # raises where the number of draws is wrong
        shares = np.zeros((len(rows), self.n_actions, self.len_list))
        positions = np.arange(self.len_list)
        step = max(1, _AT_ONCE // draws)
        for first in range(0, len(rows), step):
            numbers = np.repeat(np.arange(first, min(len(rows), first + step)), draws)
            seeds = decision_seeds(seed, first * draws, len(numbers))
            taken = self.bandit.select(rows[numbers], k=self.len_list, seeds=seeds).rows
            np.add.at(shares, (numbers[:, None], taken, positions), 1 / draws)
        return shares


@dataclass(frozen=True)
class Logged:
    """What a `bandit_feedback` says, as `Bandit.update` takes it; arms are rows.

    `positions` are where in a list actions were shown, `propensities` how likely
    they were there: None where they are not known. `arm_features` are those of all arms.
    """

    contexts: NDArray[np.float32]
    arms: Rows
    rewards: NDArray[np.float32]
    propensities: Floats | None
    positions: Rows | None
    arm_features: NDArray[np.float32] | None

    def __len__(self) -> int:
        return len(self.arms)


def from_feedback(feedback: Mapping[str, Any]) -> Logged:
    """Read a `bandit_feedback`; what is dense in it, such as `expected_reward`, is left alone."""
    missing = [name for name in _NEEDED if feedback.get(name) is None]
    if missing:
        raise InputError(
            f"A bandit_feedback needs {', '.join(_NEEDED)}: got none for {missing[0]!r}. Add it."
        )
    pscore, position, features = map(feedback.get, ("pscore", "position", "action_context"))
    logged = Logged(
        contexts=to_floats(feedback["context"], what="context"),
        arms=_whole(feedback["action"], what="action"),
        rewards=to_floats(feedback["reward"], what="reward"),
        propensities=None if pscore is None else np.asarray(pscore, np.float64),
        positions=None if position is None else _whole(position, what="position"),
        arm_features=None if features is None else to_floats(features, what="action_context"),
    )
    _check_lengths(logged)
    return logged


def to_feedback(
    bandit: Bandit,
    *,
    contexts: Any,
    arms: Any,
    rewards: Any,
    propensities: Any = None,
    positions: Any = None,
) -> dict[str, Any]:
    """Return what came of decisions as a `bandit_feedback`; arms are ids, actions their rows."""
    table, first = _table_of(bandit), np.zeros(len(arms), np.int64)
    logged = Logged(
        contexts=numbers_of(contexts, bandit),
        arms=table.rows(arms),
        rewards=to_floats(rewards, what="rewards"),
        propensities=None if propensities is None else np.asarray(propensities, np.float64),
        positions=first if positions is None else _whole(positions, what="positions"),
        arm_features=None,
    )
    _check_lengths(logged)
    catalogue = bandit.policy.arms
    features = catalogue.features.dense if isinstance(catalogue, Catalogue) else None
    return {
        "n_rounds": len(logged),
        "n_actions": len(table),
        "context": logged.contexts,
        "action_context": features,
        "action": logged.arms,
        "position": logged.positions,
        "reward": logged.rewards,
        "pscore": logged.propensities,
    }


def _table_of(bandit: Bandit) -> ArmIds:
    arms = bandit.policy.arms
    if not isinstance(arms, Catalogue):
        raise SettingError(
            "Actions of obp are numbers: got a box, in which every point is an arm. Use a "
            "catalogue of arms."
        )
    return arms.table


def _whole(raw: Any, *, what: str) -> Rows:
    array = to_array(raw, what=what)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"The {what} of a bandit_feedback needs whole numbers: got {array.dtype}. Number "
            f"the actions from 0."
        )
    return array.astype(np.int64)


def _check_lengths(logged: Logged) -> None:
    parts = (logged.contexts, logged.rewards, logged.propensities, logged.positions)
    lengths = {len(part) for part in parts if part is not None} | {len(logged.arms)}
    if len(lengths) > 1:
        raise ShapeError(
            f"Each round needs one context, action, reward and propensity: got lengths "
            f"{sorted(lengths)}. Drop the rounds that lack one."
        )
