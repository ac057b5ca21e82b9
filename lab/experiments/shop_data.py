"""A synthetic shop: items and users by name, and how likely a user is to click on an item.

Items have texts (topics have words), departments, prices with gaps, dates and sales with a long
tail. A user's taste shows in what was viewed before: its words, its department, what was paid.
The numbers here were chosen once, before anything was played. What a taste counts was then made to
agree with a real shop (`shop_calibration`), on seeds that nothing else is played on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.features.tables import Table

TOPICS, DEPARTMENTS = 12, 8
CLICK_RATE = 0.02
"""The click rate of arms taken at random, on average."""
_OWN_WORDS, _COMMON_WORDS = 40, 200
_START = datetime(2025, 1, 1)
TASTE = 17.3
"""As `python -m lab shop --calibration` finds it; 4, a guess, let users hardly differ."""

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Weights:
    """What counts in the log odds of a click: agreement of tastes, an item's appeal, its price."""

    taste: float = TASTE
    appeal: float = 0.7
    price: float = 0.5


WEIGHTS = Weights()


@dataclass(frozen=True, eq=False)
class Users:
    """Contexts by name, and what is true of them: tastes (n, topics), log budgets."""

    table: Table
    tastes: Floats
    budgets: Floats

    def take(self, rows: Rows) -> Users:
        """Return some users."""
        return Users(self.table.take(rows), self.tastes[rows], self.budgets[rows])

    def __len__(self) -> int:
        return len(self.tastes)


@dataclass(frozen=True, eq=False)
class Shop:
    """Arms by name, and what is true of them: topics (N, topics), log prices, appeal."""

    table: Table
    topics: Floats
    prices: Floats
    appeal: Floats
    sold: Floats
    constant: float = 0.0
    weights: Weights = WEIGHTS

    def __len__(self) -> int:
        return len(self.topics)

    def click_rates(self, users: Users) -> Floats:
        """Return how likely each user is to click on each item: (users, N)."""
        odds = self.weights.taste * users.tastes @ self.topics.T
        odds -= self.weights.price * np.abs(users.budgets[:, None] - self.prices)
        odds += self.weights.appeal * self.appeal + self.constant
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def make_shop(items: int, *, seed: int, weights: Weights = WEIGHTS) -> Shop:
    """Make a shop; its constant is such that random items are clicked at `CLICK_RATE`."""
    rng = np.random.default_rng([seed, 1])
    topics = rng.dirichlet(np.full(TOPICS, 0.15), items)
    prices = rng.normal(3.0 + 0.15 * topics.argmax(1), 0.7)
    appeal = rng.normal(size=items)
    sold = np.floor(np.exp(1.5 * (0.7 * appeal + 0.7 * rng.normal(size=items)) + 2.0))
    days = rng.integers(0, 700, items)
    columns = {
        "item_id": [f"i{number}" for number in range(items)],
        "title": [_text(rng, one, int(rng.integers(6, 14))) for one in topics],
        "department": [_department(rng, one) for one in topics],
        "price": [
            None if gap else round(float(np.exp(price)), 2)
            for gap, price in zip(rng.random(items) < 0.1, prices, strict=True)
        ],
        "listed": [(_START - timedelta(days=int(day))).date().isoformat() for day in days],
        "sold": [int(one) for one in sold],
    }
    shop = Shop(Table(columns, items), topics, prices, appeal, sold, weights=weights)
    return _with_constant(shop, make_users(400, seed=seed, part=9))


def _with_constant(shop: Shop, users: Users) -> Shop:
    some = np.random.default_rng(0).integers(len(shop), size=min(len(shop), 500))
    parts = {name: getattr(shop, name)[some] for name in ("topics", "prices", "appeal", "sold")}
    part = replace(shop, **parts)
    rates = part.click_rates(users)
    odds = np.log(rates / (1 - rates))
    low, high = -20.0, 5.0
    for _ in range(50):
        middle = (low + high) / 2
        is_high = (1.0 / (1.0 + np.exp(-odds - middle))).mean() > CLICK_RATE
        low, high = (low, middle) if is_high else (middle, high)
    return replace(shop, constant=high)


def make_users(count: int, *, seed: int, part: int = 2) -> Users:
    """Make users; about one in seven is new, and shows nothing of a taste."""
    rng = np.random.default_rng([seed, part])
    tastes = rng.dirichlet(np.full(TOPICS, 0.3), count)
    budgets = rng.normal(3.8, 0.8, count)
    is_new = rng.random(count) < 0.15
    viewed = [
        None if new else " ".join(_text(rng, taste, 6) for _ in range(3))
        for new, taste in zip(is_new, tastes, strict=True)
    ]
    minutes = np.sort(rng.integers(0, 60 * 24 * 30, count))
    paid = np.round(np.exp(budgets + rng.normal(0, 0.4, count)), 2)
    columns: dict[str, Any] = {
        "viewed": viewed,
        "favourite": [
            None if new else _department(rng, taste)
            for new, taste in zip(is_new, tastes, strict=True)
        ],
        "paid": [None if new else float(one) for new, one in zip(is_new, paid, strict=True)],
        "age": [int(one) for one in np.clip(rng.normal(38, 14, count), 16, 90)],
        "country": [f"country-{n}" for n in rng.zipf(1.8, count).clip(1, 12)],
        "device": [["phone", "tablet", "desktop"][n] for n in rng.integers(0, 3, count)],
        "member": [bool(one) for one in rng.random(count) < 0.3],
        "at": [(_START + timedelta(minutes=int(one))).isoformat() for one in minutes],
    }
    return Users(Table(columns, count), tastes, budgets)


def _department(rng: np.random.Generator, weights: Floats) -> str:
    """Draw a department by topics; one in seven stands in any."""
    topic = int(rng.choice(TOPICS, p=weights))
    number = topic % DEPARTMENTS if rng.random() > 0.15 else int(rng.integers(DEPARTMENTS))
    return f"department {number}"


def _text(rng: np.random.Generator, weights: Floats, words: int) -> str:
    """Draw words, three in five of them of the topics."""
    topics = rng.choice(TOPICS, size=words, p=weights)
    own, common = rng.zipf(1.3, words) % _OWN_WORDS, rng.zipf(1.2, words) % _COMMON_WORDS
    is_own = rng.random(words) < 0.6
    return " ".join(
        f"t{topic}w{one}" if is_topic else f"word{other}"
        for topic, one, other, is_topic in zip(topics, own, common, is_own, strict=True)
    )
