"""Logs in the layout of the Open Bandit Dataset: a campaign shown by one policy.

Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline" (NeurIPS 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.evaluation.rounds import LoggedRounds, Rows
from fastbandit.features.csv_files import read_csv, to_numbers

_USER = tuple(f"user_feature_{number}" for number in range(4))
_ITEM = tuple(f"item_feature_{number}" for number in range(4))


@dataclass(frozen=True, eq=False)
class Files:
    """The files of one campaign as arrays: users, items and what was clicked."""

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    chosen: Rows
    clicks: NDArray[np.float64]
    propensities: NDArray[np.float64]
    positions: list[str]


def read_campaign(folder: Path) -> LoggedRounds:
    """Read a folder such as obd/random/men; the position on the page is part of the context."""
    name, policy = folder.name, folder.parent.name
    path = folder / f"{name}.csv"
    if not path.exists() or policy not in ("random", "bts"):
        raise DataError(
            f"An Open Bandit folder needs to be one such as obd/random/men, with men.csv in it: "
            f"got {folder}. Name that one."
        )
    read = read_files(path)
    return LoggedRounds(
        contexts=np.concatenate([read.users, one_hot([read.positions])], axis=1),
        chosen=read.chosen,
        rewards=read.clicks,
        propensities=read.propensities,
        arms=len(read.items),
        vectors=read.items,
    )


def read_files(path: Path) -> Files:
    items = _read_items(path.with_name("item_context.csv"))
    columns = ["item_id", "click", "propensity_score"]
    table = read_csv(path, [*columns, "position", *_USER])
    numbers = {c: to_numbers(table[c], path=path, column=c) for c in columns}
    return Files(
        users=one_hot([table[column] for column in _USER]),
        items=items,
        chosen=numbers["item_id"].astype(np.int64),
        clicks=numbers["click"],
        propensities=numbers["propensity_score"],
        positions=table["position"],
    )


def _read_items(path: Path) -> NDArray[np.float32]:
    """Return the features of the items, in the order of their ids: (N, D)."""
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
    """Return one flag for each level of each column, levels in the order of the alphabet."""
    parts = []
    for column in columns:
        levels, numbers = np.unique(np.array(column), return_inverse=True)
        parts.append(np.eye(len(levels), dtype=np.float32)[numbers.reshape(-1)])
    return np.concatenate(parts, axis=1)
