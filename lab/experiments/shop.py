"""`python -m lab shop`: a synthetic shop, cold and warm, against popularity on the same users."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import click
import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.cores import one_thread
from fastbandit.learning.schedule import Schedule
from fastbandit.progress import progress_bar
from fastbandit.settings.service import LearnConfig
from lab.experiments.shop_bars import Row, bars_of, print_bars, print_rows, rows_of
from lab.experiments.shop_calibration import department_rows, print_calibration
from lab.experiments.shop_data import (
    TASTE,
    Floats,
    Rows,
    Shop,
    Users,
    Weights,
    make_shop,
    make_users,
)
from lab.experiments.shop_gate import Gated, Judged, print_judged

_STRENGTH = 20.0  # clicks of an item count as if it had been shown so often before
_CHUNK = 500
T = TypeVar("T")


class Agent(Protocol):
    """Who chooses items, and learns from clicks, after so many requests at a time."""

    def batch(self, learned: int) -> int: ...
    def select(self, users: Users) -> Rows: ...
    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None: ...


class Neural:
    """A bandit with default settings."""

    def __init__(self, shop: Shop, sample: Users, *, seed: int, embed_ids: bool = False) -> None:
        self.bandit = Bandit(
            context=sample.table,
            arms=shop.table,
            embed_ids=embed_ids,
            seed=seed,
            progress=False,
        )
        self.ids = np.array(shop.table.columns["item_id"])
        usual = LearnConfig()
        self._schedule = Schedule(usual.fresh, usual.growth, usual.seconds)

    def batch(self, learned: int) -> int:
        return self._schedule.needed(learned)

    def select(self, users: Users) -> Rows:
        return self.bandit.select(users.table).rows[:, 0]

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        self.bandit.update(contexts=users.table, arms=self.ids[rows], rewards=clicks)

    def fit(self, users: Users, rows: Rows, clicks: Floats) -> None:
        """Learn a log."""
        self.bandit.fit(contexts=users.table, arms=self.ids[rows], rewards=clicks)


class Popularity:
    """Click rates of items, shrunken to that of all: drawn (Thompson), or the highest.

    They are counted every 20 requests: counting is quick.
    """

    def __init__(self, items: int, *, seed: int, is_greedy: bool) -> None:
        self._clicks, self._shown = np.zeros(items), np.zeros(items)
        self._rng, self._is_greedy = np.random.default_rng([seed, 5]), is_greedy

    def batch(self, learned: int) -> int:
        return 20

    def select(self, users: Users) -> Rows:
        rate = (self._clicks.sum() + 1.0) / (self._shown.sum() + 50.0)
        clicks = self._clicks + _STRENGTH * rate
        misses = self._shown - self._clicks + _STRENGTH * (1.0 - rate)
        if self._is_greedy:
            means = clicks / (clicks + misses) + 1e-9 * self._rng.random(len(clicks))
            return np.full(len(users), int(means.argmax()), dtype=np.int64)
        return np.array([self._rng.beta(clicks, misses).argmax() for _ in range(len(users))])

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        np.add.at(self._clicks, rows, clicks)
        np.add.at(self._shown, rows, 1.0)


class Best:
    """The best item of each user: what nobody can know."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def batch(self, learned: int) -> int:
        return _CHUNK

    def select(self, users: Users) -> Rows:
        return np.concatenate(
            [self._shop.click_rates(some).argmax(1) for some in _chunks(users)]
        ).astype(np.int64)

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        """Learn nothing."""


class Drawn:
    """Items drawn with fixed probabilities: all alike, or by how often they were sold."""

    def __init__(self, weights: Floats, *, seed: int) -> None:
        self._weights, self._rng = weights / weights.sum(), np.random.default_rng([seed, 6])

    def batch(self, learned: int) -> int:
        return _CHUNK

    def select(self, users: Users) -> Rows:
        return self._rng.choice(len(self._weights), size=len(users), p=self._weights)

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        """Learn nothing."""


class BestItem:
    """The one item that is best for all users together: what popularity may find at most.

    Or, of each department, the one: for users whose favourite it is.
    """

    def __init__(self, shop: Shop, users: Users, *, by_department: bool = False) -> None:
        rates = [shop.click_rates(some).sum(0) for some in _chunks(users)]
        self._popular, self._shop = np.sum(rates, axis=0), shop
        self._by_department = by_department

    def batch(self, learned: int) -> int:
        return _CHUNK

    def select(self, users: Users) -> Rows:
        if self._by_department:
            return department_rows(self._shop, users, self._popular)
        return np.full(len(users), self._popular.argmax(), dtype=np.int64)

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        """Learn nothing."""


class BestSellers:
    """The hundred items that were sold most, one as likely as another."""

    def __init__(self, sold: Floats, *, seed: int) -> None:
        self._top, self._rng = np.argsort(-sold)[:100], np.random.default_rng([seed, 7])

    def batch(self, learned: int) -> int:
        return _CHUNK

    def select(self, users: Users) -> Rows:
        return self._rng.choice(self._top, size=len(users))

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        """Learn nothing."""


@dataclass(frozen=True)
class Plan:
    """So many items, requests and logged decisions."""

    items: int = 5_000
    requests: int = 10_000
    logged: int = 20_000
    embed_ids: bool = False
    taste: float = TASTE


def play(agent: Agent, shop: Shop, users: Users, *, learned: int, seed: int) -> Floats:
    """Play users in order; return the expected clicks of what was chosen for each."""
    luck = np.random.default_rng([seed, 8]).random(len(users))  # the same for every agent
    expected, first = np.zeros(len(users)), 0
    while first < len(users):
        size = min(agent.batch(learned), len(users) - first)
        rows = np.arange(first, first + size)
        some = users.take(rows)
        chosen = agent.select(some)
        expected[rows] = rates_of(shop, some, chosen)
        first, learned = first + size, learned + size
        if first < len(users):
            agent.learn(some, chosen, (luck[rows] < expected[rows]).astype(np.float64))
    return expected


def rates_of(shop: Shop, users: Users, chosen: Rows) -> Floats:
    """Return the click rate of each user's item."""
    found, at = np.zeros(len(users)), 0
    for some in _chunks(users):
        rows = np.arange(len(some))
        found[at : at + len(some)] = shop.click_rates(some)[rows, chosen[at + rows]]
        at += len(some)
    return found


def _chunks(users: Users) -> Iterator[Users]:
    for first in range(0, len(users), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(users)))
        yield Users(users.table, users.tastes[rows], users.budgets[rows])


def play_seed(plan: Plan, seed: int, tick: Callable[[str], None]) -> list[Row]:
    """Play all agents cold, then those that saw a log."""
    shop = make_shop(plan.items, seed=seed, weights=Weights(taste=plan.taste))
    users, sample = make_users(plan.requests, seed=seed), make_users(1_000, seed=seed, part=3)

    def agents() -> dict[str, Agent]:
        return {
            "popularity": Popularity(len(shop), seed=seed, is_greedy=False),
            "greedy popularity": Popularity(len(shop), seed=seed, is_greedy=True),
            "fastbandit": Neural(shop, sample, seed=seed, embed_ids=plan.embed_ids),
        }

    fixed: dict[str, Agent] = {
        "random": Drawn(np.ones(len(shop)), seed=seed),
        "best sellers": BestSellers(shop.sold, seed=seed),
        "best item": BestItem(shop, users),
        "best of department": BestItem(shop, users, by_department=True),
        "oracle": Best(shop),
    }
    earned = {}
    for name, agent in (fixed | agents()).items():
        tick(f"cold: {name}")
        earned[name] = play(agent, shop, users, learned=0, seed=seed)
    rows = rows_of(earned, seed=seed, start="cold")
    if not plan.logged:
        return rows
    logged, chosen, clicks = make_log(plan, shop, seed)
    warm = {name: earned[name] for name in fixed}
    for name, agent in agents().items():
        tick(f"warm: {name}")
        (agent.fit if isinstance(agent, Neural) else agent.learn)(logged, chosen, clicks)
        warm[name] = play(agent, shop, users, learned=plan.logged, seed=seed)
    return rows + rows_of(warm, seed=seed, start="warm")


def make_log(plan: Plan, shop: Shop, seed: int) -> tuple[Users, Rows, Floats]:
    """Return users, items drawn by the roots of how often they were sold, and clicks."""
    logged = make_users(plan.logged, seed=seed, part=4)
    chosen = Drawn(np.sqrt(1.0 + shop.sold), seed=seed + 1).select(logged)
    luck = np.random.default_rng([seed, 9]).random(len(logged))
    return logged, chosen, (luck < rates_of(shop, logged, chosen)).astype(np.float64)


def judge_seed(plan: Plan, seed: int, tick: Callable[[str], None]) -> list[Judged]:
    """Let the gate of the service judge the versions of a bandit that starts cold, then warm."""
    shop = make_shop(plan.items, seed=seed, weights=Weights(taste=plan.taste))
    users, sample = make_users(plan.requests, seed=seed), make_users(1_000, seed=seed, part=3)
    judged = []
    for start in ("cold", "warm") if plan.logged else ("cold",):
        tick(f"{start}: versions")
        agent = Neural(shop, sample, seed=seed, embed_ids=plan.embed_ids)
        if start == "warm":
            agent.fit(*make_log(plan, shop, seed))
        with TemporaryDirectory() as folder:
            gated = Gated(agent.bandit, agent.ids, Path(folder))
            play(gated, shop, users, learned=0, seed=seed)
        judged += [Judged(seed, start, *one) for one in gated.judged]
    return judged


@click.command("shop")
@click.option("--items", default=5_000, show_default=True, type=click.IntRange(20, 100_000))
@click.option("--requests", default=10_000, show_default=True, type=click.IntRange(50))
@click.option(
    "--logged",
    default=20_000,
    show_default=True,
    type=click.IntRange(0),
    help="Decisions of a log by popularity, for a warm start; 0: none.",
)
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1), help="Shops.")
@click.option("--first-seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--embed-ids", is_flag=True, help="Let items learn something of their own.")
@click.option("--taste", default=TASTE, show_default=True, help="What the taste of users counts.")
@click.option("--calibration", is_flag=True, help="Show how that was chosen, and play nothing.")
@click.option("--gate", is_flag=True, help="Show which versions the service would refuse instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def shop_command(
    items: int,
    requests: int,
    logged: int,
    seeds: int,
    first_seed: int,
    embed_ids: bool,
    taste: float,
    calibration: bool,
    gate: bool,
    as_json: bool,
) -> None:
    """Sell in a synthetic shop with default settings, beside popularity, chance and the best.

    Users, and their readiness to click, are the same for all. Rates are expected clicks of what
    was chosen. Updates come when the service would make them.
    """
    if calibration:
        return print_calibration()
    one_thread()
    plan = Plan(items, requests, logged, embed_ids=embed_ids, taste=taste)
    if gate:
        judged = _each(seeds, first_seed, 2 if logged else 1, partial(judge_seed, plan))
        shown: dict[str, list[Any]] = {"versions": judged}
    else:
        rows = _each(seeds, first_seed, 11 if logged else 8, partial(play_seed, plan))
        shown = {"rows": rows, "bars": bars_of(rows)}
    if as_json:
        found = {name: [asdict(one) for one in some] for name, some in shown.items()}
        click.echo(json.dumps(found, indent=1))
    elif gate:
        print_judged(judged)
    else:
        note = f"Click rates in a shop of {plan.items:,} items, {plan.requests:,} requests"
        print_rows(rows, note)
        print_bars(bars_of(rows))


def _each(
    seeds: int, first: int, steps: int, made: Callable[[int, Callable[[str], None]], list[T]]
) -> list[T]:
    """Return what is made of each seed, with a progress bar of so many steps a seed."""
    found: list[T] = []
    with progress_bar("Shop") as progress:
        done = iter(range(seeds * steps))
        for seed in range(first, first + seeds):
            found += made(seed, lambda doing: progress(next(done), seeds * steps, doing))
    return found
