"""A synthetic shop: what is sold by name, beside popularity."""

from __future__ import annotations

import json

import numpy as np
from click.testing import CliRunner

from fastbandit import Schema
from lab.__main__ import cli
from lab.experiments.shop import Best, Popularity, play
from lab.experiments.shop_data import CLICK_RATE, make_shop, make_users


def test_all_agents_play_cold_and_warm(little_training: None) -> None:
    words = ["shop", "--items=40", "--requests=60", "--logged=50", "--seeds=1", "--json"]

    found = json.loads(CliRunner().invoke(cli, words, catch_exceptions=False).output)

    rows = found["rows"]
    assert [bar["verdict"] for bar in found["bars"]] == ["undecided"] * 3
    earned = {(row["start"], row["agent"]): row["whole"] for row in rows}
    assert len(earned) == 16
    assert max(earned, key=lambda one: earned[one])[1] == "oracle"
    assert earned["warm", "fastbandit"] > 0


def test_random_items_are_clicked_at_the_rate_that_was_chosen() -> None:
    shop, users = make_shop(300, seed=1), make_users(500, seed=1)

    assert abs(shop.click_rates(users).mean() - CLICK_RATE) < 0.005


def test_a_shop_is_fixed_by_its_seed() -> None:
    one, other = make_shop(30, seed=2), make_shop(30, seed=2)

    assert one.table.columns == other.table.columns
    assert np.array_equal(one.topics, other.topics)


def test_a_shop_has_columns_of_many_kinds() -> None:
    kinds = {kind for _, kind, _, _ in Schema.infer(make_shop(200, seed=0).table).rows()}

    assert kinds == {"ignored", "text", "category", "number", "date"}


def test_popularity_earns_less_than_the_best() -> None:
    shop, users = make_shop(50, seed=3), make_users(200, seed=3)

    popular = Popularity(50, seed=3, is_greedy=True)
    earned = play(popular, shop, users, learned=0, seed=3)

    assert earned.mean() < play(Best(shop), shop, users, learned=0, seed=3).mean()
