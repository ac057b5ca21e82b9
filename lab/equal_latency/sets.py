"""What is played: functions over any number of arms, ratings of films, a synthetic shop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from fastbandit.features.kinds import Dense, kind_of
from fastbandit.types import Inputs
from lab.bakeoff.sets import Set
from lab.experiments import datasets
from lab.experiments.environment import Environment, Tabled
from lab.experiments.shop_data import make_shop, make_users

FUNCTIONS = ("h1", "h2", "h3")
RATINGS = {"movielens": "MovieLens", "the-movies": "The Movies"}
SHOP, ITEMS = "shop", 5_000
NAMES = (*FUNCTIONS, *RATINGS, SHOP)
ROUNDS, BATCH = 5_000, 500


def asked(names: Sequence[str], arms: Sequence[int], *, rounds: int, batch: int) -> list[Set]:
    """Return the sets of these names, a function once for each number of arms."""
    found = []
    for name in names:
        if name in FUNCTIONS:
            found += [
                Set(
                    f"{name}-{size}",
                    f"{name}, {size:,} arms",
                    partial(_function, name, size),
                    rounds,
                    batch,
                )
                for size in arms
            ]
        elif name == SHOP:
            title = f"Shop, {ITEMS:,} items"
            found.append(Set(name, title, partial(_shop, rounds), rounds, batch))
        else:
            found.append(Set(name, RATINGS[name], partial(_ratings, name), rounds, batch))
    return found


def function_of(name: str) -> tuple[str, int] | None:
    """Return the function and the arms that a set's name tells of; None for other sets."""
    function, _, arms = name.partition("-")
    return (function, int(arms)) if function in FUNCTIONS and arms.isdecimal() else None


def _function(name: str, arms: int, data: Path | None, seed: int) -> Environment:
    return datasets.load(name, seed=seed, arms=arms)


def _ratings(name: str, data: Path | None, seed: int) -> Environment:
    return datasets.load(name, data=data, seed=seed)


def _shop(rounds: int, data: Path | None, seed: int) -> Environment:
    """Return a shop whose columns became numbers, the same for all: as a schema makes them."""
    shop, users = make_shop(ITEMS, seed=seed), make_users(rounds, seed=seed)
    sample = make_users(1_000, seed=seed, part=3)
    kind = kind_of(sample.table, what="contexts")
    contexts = kind.read(users.table, what="contexts").dense
    arms = kind_of(shop.table, what="arms").read(shop.table, what="arms").dense
    assert contexts is not None
    assert arms is not None
    return Tabled(
        name=SHOP,
        context=Dense(contexts.shape[1]),
        instances=Inputs(dense=contexts),
        expected_rewards=shop.click_rates(users).astype(np.float32),
        arms=arms,
        seed=seed,
    )
