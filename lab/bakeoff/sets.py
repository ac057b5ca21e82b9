"""What is played: sets by name, each with its rounds and batch, some with a log to begin from.

A log holds some users, drawn by the seed, each with all arms: contexts, arms and rewards
of 0 and 1, which are 0 where there is no rating, as in the rounds. The agents then meet the other
users.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from lab.bakeoff.keel import SIZES, load_digits, load_keel
from lab.experiments import datasets
from lab.experiments.environment import FAR, Environment, Tabled, as_raw

_USERS, _DRAWS = FAR + 5, FAR + 6  # offsets of seeds that nothing else takes


@dataclass(frozen=True)
class Log:
    """Interactions of the past, as an agent's update takes them."""

    contexts: Any
    arms: NDArray[np.int64]
    rewards: NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """What one seed makes of a set: rounds to play, and a log to begin from or None."""

    environment: Environment
    log: Log | None = None


Load = Callable[[Path | None, int], Environment]
"""Reads an environment from the folder of data, for a seed."""


@dataclass(frozen=True)
class Set:
    """An environment by name, how many rounds of it are played, and in what batches.

    With `users` above 0 agents begin from a log of so many users.
    """

    name: str
    title: str
    environment: Load
    rounds: int
    batch: int
    users: int = 0

    def load(self, data: Path | None, seed: int) -> Setting:
        """Return the setting of a seed."""
        environment = self.environment(data, seed)
        if not self.users:
            return Setting(environment)
        assert isinstance(environment, Tabled)
        return with_log(environment, users=self.users)


def with_log(cold: Tabled, *, users: int) -> Setting:
    """Part the instances of a table: the ratings of some are a log, the rounds of others remain."""
    root = int(decision_seeds(cold.seed, _USERS, 1)[0])
    draws = uniforms(decision_seeds(root, 0, len(cold.instances)), 1, Stream.TRAINING)[:, 0]
    logged = np.sort(np.argsort(draws, kind="stable")[:users])
    visits = np.arange(len(cold.instances)) if cold.visits is None else cold.visits
    warm = replace(cold, visits=visits[~np.isin(visits, logged)])
    return Setting(warm, _log_of(cold, logged))


def _log_of(cold: Tabled, instances: NDArray[np.int64]) -> Log:
    """Return an interaction of each instance with each arm, its reward drawn."""
    from scipy.sparse import csr_matrix

    expected = csr_matrix(cold.expected_rewards[instances]).toarray()
    rows, arms = np.divmod(np.arange(expected.size), expected.shape[1])
    root = int(decision_seeds(cold.seed, _DRAWS, 1)[0])
    draws = uniforms(decision_seeds(root, 0, expected.size), 1, Stream.TRAINING)[:, 0]
    rewards = (draws < expected.reshape(-1)).astype(np.float64)
    return Log(as_raw(cold.instances.take(instances[rows])), arms, rewards)


# -- all of them


def _of_datasets(name: str, data: Path | None, seed: int) -> Environment:
    return datasets.load(name, data=data, seed=seed)


def _ratings(name: str, title: str, rounds: int) -> list[Set]:
    """Return a set of ratings: cold, and from logs of 10 and 61 users."""
    load = partial(_of_datasets, name)
    cold = Set(name, title, load, rounds, 500)
    return [
        cold,
        *(
            replace(cold, name=f"{name}-{users}", title=f"{title}, log of {users}", users=users)
            for users in (10, 61)
        ),
    ]


def _keel(name: str) -> list[Set]:
    """Return classes as arms at 2,000 and at 5,000 rounds, or at all there are."""
    load = partial(load_keel, name)
    return [Set(name, name, load, min(rounds, SIZES[name]), 100) for rounds in (2000, 5000)]


SETS: tuple[Set, ...] = (
    Set("bibtex", "Bibtex", partial(_of_datasets, "bibtex"), 7395, 500),
    Set("bibtex", "Bibtex", partial(_of_datasets, "bibtex"), 7395, 50),
    Set("openbandit", "Open Bandit (simulator)", partial(_of_datasets, "openbandit"), 10000, 500),
    *_ratings("movielens", "MovieLens", 6100),
    *_ratings("the-movies", "The Movies", 5000),
    Set("digits", "digits", load_digits, 1797, 100),
    *(entry for name in SIZES for entry in _keel(name)),
)
"""All sets; those of one name differ in rounds or batch."""

NAMES = tuple(dict.fromkeys(entry.name for entry in SETS))


def asked(names: tuple[str, ...], *, rounds: int | None, batch: int | None) -> list[Set]:
    """Return the sets of these names, each once, with other rounds or batches where given."""
    changed = (
        replace(entry, rounds=rounds or entry.rounds, batch=batch or entry.batch)
        for entry in SETS
        if entry.name in names
    )
    unique = {(entry.name, entry.rounds, entry.batch): entry for entry in changed}
    return list(unique.values())
