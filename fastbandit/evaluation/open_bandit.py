"""The Open Bandit files: each campaign was shown by two policies, so each can judge the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fastbandit.errors import DataError
from fastbandit.evaluation.rounds import LoggedRounds, Rows
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.experiments.datasets.files import find, read_csv, to_numbers
from fastbandit.experiments.datasets.openbandit import load_log, one_hot

_FOLDERS = ("openbandit/obd", "obd", "openbandit", "open_bandit_dataset")


@dataclass(frozen=True, eq=False)
class Campaign:
    """Rounds of one campaign, logged by one policy, and the place on the page of each, from 0."""

    name: str
    policy: str
    rounds: LoggedRounds
    places: Rows


def read_campaign(folder: Path) -> Campaign:
    """Read a folder such as obd/random/men; the place on the page is part of the context."""
    name, policy = folder.name, folder.parent.name
    path = folder / f"{name}.csv"
    if not path.exists() or policy not in ("random", "bts"):
        raise DataError(
            f"An Open Bandit folder needs to be one such as obd/random/men, with men.csv in it: "
            f"got {folder}. Name that one."
        )
    log = load_log(data=folder.parent.parent.parent, campaign=name, policy=policy)
    texts = read_csv(path, ["position"])["position"]
    places = to_numbers(texts, path=path, column="position").astype(np.int64)
    users = log.contexts.dense
    assert users is not None
    rounds = LoggedRounds(
        contexts=np.concatenate([users, one_hot([texts])], axis=1),
        chosen=log.chosen,
        rewards=log.rewards,
        propensities=log.propensities,
        arms=log.size,
        vectors=log.arms,
    )
    return Campaign(name, policy, rounds, np.unique(places, return_inverse=True)[1].reshape(-1))


def find_campaign(data: Path | None, policy: str, name: str) -> Campaign:
    """Read a campaign from below the data folder."""
    files = [f"{folder}/{policy}/{name}/{name}.csv" for folder in _FOLDERS]
    return read_campaign(find("openbandit", files, data=data).parent)


def policy_behind(log: Campaign, rounds: Campaign) -> SparsePolicy:
    """Tell what the policy that made one log would have done in the rounds of another.

    The policy "random" is uniform. The policy "bts" looks at the place on the page alone and
    changed over the week: its probabilities are its shares of arms at each place, in its log.
    """
    if log.policy == "random":
        return SparsePolicy.uniform(rounds.rounds)
    arms, count = log.rounds.arms, int(log.places.max()) + 1
    cells = np.bincount(log.places * arms + log.rounds.chosen, minlength=count * arms)
    shares = cells.reshape(count, arms) / np.bincount(log.places)[:, None]
    rows = np.broadcast_to(np.arange(arms, dtype=np.int32), (len(rounds.rounds), arms))
    return SparsePolicy(rows, shares[rounds.places], arms=arms)
