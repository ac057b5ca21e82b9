"""A budget: what a unit of cost weighs against a score, learned so that spending follows a plan.

The multiplier of the knapsack is found by mirror descent on its dual: it grows where a decision
costs more than what is left for each decision to come, and shrinks where it costs less.
"""

from __future__ import annotations

import json
from math import exp, inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbandit.declaration import check_number
from fastbandit.errors import InputError, SettingError, SnapshotError
from fastbandit.features.kinds import is_size
from fastbandit.files.atomic import write_atomic

_MOST = 10.0  # times its share: one decision moves the weight no more than if it had cost that
_LEAST = 1e-6  # of the first weight, from which it still finds back
_SETTINGS = ("total", "horizon", "cap", "fallback", "rate")
_STATE = ("weight", "spent", "today", "decisions")


class Budget:
    """Spend `total` in `horizon` decisions, and at most `cap` a day.

    `weight` is what a unit of cost weighs in units of score; at first, the average decision's cost
    weighs 1. Where costs of arms are known beforehand, `choose` takes the best score less its
    weighted cost. Where they are not, they are learned:
    `bandit.reweight({"cost": -budget.weight})`. An arm that costs more than may still be spent is
    not eligible, unless it costs at most `fallback`, or no arm costs less. `rate` is how fast the
    weight moves. Days begin with `begin_day`.
    """

    def __init__(
        self,
        total: float,
        horizon: int,
        *,
        cap: float | None = None,
        fallback: float = 0.0,
        rate: float = 0.02,
    ) -> None:
        check_number("total of a budget", total, above_zero=True)
        check_number("rate of a budget", rate, above_zero=True)
        check_number("fallback of a budget", fallback)
        if cap is not None:
            check_number("cap of a budget", cap, above_zero=True)
        if not is_size(horizon):
            raise SettingError(
                f"The horizon of a budget needs to be a whole number of at least 1: got "
                f"{horizon!r}. Give the number of decisions that the total is for."
            )
        self.total, self.horizon, self.cap = float(total), int(horizon), cap
        self.fallback, self.rate = float(fallback), float(rate)
        self.weight = self.horizon / self.total
        self.spent = self.today = 0.0
        self.decisions = 0

    def __repr__(self) -> str:
        return (
            f"Budget({self.spent:.4g} of {self.total:.4g} spent in {self.decisions:,} of "
            f"{self.horizon:,} decisions, weight {self.weight:.4g})"
        )

    @property
    def room(self) -> float:
        """What may still be spent today."""
        return min(self.total - self.spent, inf if self.cap is None else self.cap - self.today)

    @property
    def share(self) -> float:
        """What is left for each decision to come, on average."""
        return max(0.0, self.total - self.spent) / max(1, self.horizon - self.decisions)

    def observe(self, costs: ArrayLike) -> None:
        """Take note of what decisions cost, one or several in their order."""
        least = _LEAST * self.horizon / self.total
        for cost in _costs(costs, axes=1).tolist():
            over = cost / self.share if self.share > 0 else _MOST
            self.weight = max(least, self.weight * exp(self.rate * (min(over, _MOST) - 1)))
            self.spent, self.today = self.spent + cost, self.today + cost
            self.decisions += 1

    def begin_day(self) -> None:
        """Let the cap count from here on."""
        self.today = 0.0

    def eligible(self, costs: ArrayLike) -> NDArray[np.bool_]:
        """Return which of the arms with these costs may be taken now: always one at least."""
        return _within(_costs(costs, axes=1), max(self.room, self.fallback))

    def choose(self, scores: ArrayLike, costs: ArrayLike) -> NDArray[np.int64]:
        """Return the position of the best arm in each row of scores, by its cost and the weight.

        Scores and costs are tables of one shape, with a row for each decision, as
        `bandit.select(contexts, k=len(bandit))` scores all arms. What is left is counted down from
        row to row. Nothing is spent until it is observed.
        """
        wanted, each = np.atleast_2d(np.asarray(scores, dtype=np.float64)), _costs(costs, axes=2)
        if wanted.shape != each.shape or not wanted.shape[1]:
            raise InputError(
                f"Scores and costs need one shape, a row for each decision: got {wanted.shape} and "
                f"{each.shape}. Give the cost of each arm in the order of its score."
            )
        taken, room = np.zeros(len(each), dtype=np.int64), self.room
        for row, (score, cost) in enumerate(zip(wanted, each, strict=True)):
            is_eligible = _within(cost, max(room, self.fallback))
            taken[row] = np.argmax(np.where(is_eligible, score - self.weight * cost, -inf))
            room -= cost[taken[row]]
        return taken

    def save(self, path: str | Path) -> None:
        """Write the budget, and what was spent of it, as JSON."""
        state = {name: getattr(self, name) for name in (*_SETTINGS, *_STATE)}
        write_atomic(Path(path), json.dumps(state).encode())

    @staticmethod
    def load(path: str | Path) -> Budget:
        """Read a budget, which goes on where it stopped."""
        try:
            state: dict[str, Any] = json.loads(Path(path).read_bytes())
            total, horizon = state["total"], state["horizon"]
            budget = Budget(total, horizon, **{name: state[name] for name in _SETTINGS[2:]})
            for name in _STATE:
                check_number(name, state[name])
                setattr(budget, name, state[name])
        except (ValueError, KeyError, TypeError) as error:
            raise SnapshotError(
                f"A budget needs to be as it was saved: {path} is not ({error}). Load another copy."
            ) from error
        return budget


def _within(costs: NDArray[np.float64], room: float) -> NDArray[np.bool_]:
    return np.asarray(costs <= max(room, costs.min()))


def _costs(raw: ArrayLike, *, axes: int) -> NDArray[np.float64]:
    """Return costs as numbers of at least 0, in so many axes."""
    costs = np.asarray(raw, dtype=np.float64)
    costs = costs[(None,) * max(0, axes - costs.ndim)]
    if costs.ndim != axes or not (np.isfinite(costs) & (costs >= 0)).all():
        raise InputError(
            f"Costs need to be finite numbers of at least 0, in {axes} axes at most: got "
            f"{np.asarray(raw).ravel()[:3].tolist()} in {np.asarray(raw).ndim}. Leave out what is "
            f"not known."
        )
    return costs
