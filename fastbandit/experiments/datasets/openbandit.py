"""Open Bandit Dataset, small version: logged recommendations of a fashion shop.

Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline" (NeurIPS 2021). A
context is what is known of the user; the position of a recommendation on the page (1 to 3) is
no property of the user and is left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.experiments.datasets.files import find, read_csv, to_numbers
from fastbandit.experiments.environment import Tabled
from fastbandit.experiments.logged import LoggedData, fit_simulator
from fastbandit.features import Dense
from fastbandit.names import known_name
from fastbandit.progress import progress_bar
from fastbandit.types import Inputs

CAMPAIGNS = ("all", "men", "women")
POLICIES = ("random", "bts")
MODES = ("simulator", "replay")

_FOLDERS = ("openbandit/obd", "obd", "openbandit", "open_bandit_dataset")
_USER = tuple(f"user_feature_{number}" for number in range(4))
_ITEM = tuple(f"item_feature_{number}" for number in range(4))


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    campaign: str = "all",
    policy: str = "random",
    mode: str = "simulator",
) -> Tabled | LoggedData:
    """Make a simulator fitted to a log; with mode "replay" give the log itself, for `replay`."""
    known_name("mode", mode, MODES)
    log = load_log(data=data, campaign=campaign, policy=policy, name=name, seed=seed)
    if mode == "replay":
        return log
    with progress_bar("Open Bandit") as progress:
        return fit_simulator(log, progress=progress)


def load_log(
    *,
    data: Path | None,
    campaign: str = "all",
    policy: str = "random",
    name: str = "openbandit",
    seed: int = 0,
) -> LoggedData:
    """Read the log of one campaign and one logging policy."""
    known_name("campaign", campaign, CAMPAIGNS)
    known_name("logging policy", policy, POLICIES)
    within = f"{policy}/{campaign}"
    log = find(name, [f"{folder}/{within}/{campaign}.csv" for folder in _FOLDERS], data=data)
    arms = _read_items(log.with_name("item_context.csv"))
    columns = ["item_id", "click", "propensity_score", *_USER]
    table = read_csv(log, columns)
    contexts = one_hot([table[column] for column in _USER])
    numbers = {c: to_numbers(table[c], path=log, column=c) for c in columns[:3]}
    return LoggedData(
        name=name,
        context=Dense(contexts.shape[1]),
        contexts=Inputs(dense=contexts),
        size=len(arms),
        chosen=numbers["item_id"].astype(np.int64),
        rewards=numbers["click"],
        propensities=numbers["propensity_score"],
        arms=arms,
        seed=seed,
        notes=(
            f"campaign {campaign}, logged by {policy}; {int(numbers['click'].sum())} clicks in "
            f"{len(numbers['click']):,} rounds",
            "the position on the page (1 to 3) is left out of the context",
        ),
    )


def _read_items(path: Path) -> NDArray[np.float32]:
    """Give the features of the items, in the order of their ids: (N, D)."""
    if not path.exists():
        raise DataError(
            f"The dataset openbandit needs item_context.csv beside each log: found none in "
            f"{path.parent}. Copy it there."
        )
    table = read_csv(path, ["item_id", *_ITEM])
    ids = to_numbers(table["item_id"], path=path, column="item_id").astype(np.int64)
    if not np.array_equal(np.sort(ids), np.arange(len(ids))):
        raise DataError(
            f"{path} needs the items 0 to {len(ids) - 1}, once each: some are missing or there "
            f"twice. Download it again."
        )
    number = to_numbers(table[_ITEM[0]], path=path, column=_ITEM[0])
    number = (number - number.mean()) / max(float(number.std()), 1e-12)
    features = np.column_stack([number, one_hot([table[column] for column in _ITEM[1:]])])
    return features[np.argsort(ids)].astype(np.float32)


def one_hot(columns: list[list[str]]) -> NDArray[np.float32]:
    """Give one flag for each level of each column, levels in the order of the alphabet."""
    parts = []
    for column in columns:
        levels, places = np.unique(np.array(column), return_inverse=True)
        parts.append(np.eye(len(levels), dtype=np.float32)[places.reshape(-1)])
    return np.concatenate(parts, axis=1)
