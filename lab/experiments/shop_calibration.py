"""What a taste counts in the synthetic shop, from one figure of a real one.

Among the 105,542 articles of a fashion shop, the article bought most in the section where a
customer bought last was clicked at a rate of .295, the article bought most at .17. So a taste
counts so much here that the item clicked most of a user's favourite department earns as many times
what the item clicked most earns, both known in hindsight, on average over seeds that nothing is
played on.
"""

from __future__ import annotations

import numpy as np

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
from lab.printing import print_lines

LIFT = 0.295 / 0.17
"""How many times as much the best of a customer's last section earned, in the real shop."""
SEEDS = range(100, 110)
GUESSED = 4.0
_ITEMS, _USERS = 5_000, 2_000
_STEPS = 12


def department_rows(shop: Shop, users: Users, popular: Floats) -> Rows:
    """Return the most popular item of each user's department, of all where none is known."""
    departments = np.array(shop.table.columns["department"])
    best = {
        str(name): int(np.where(departments == name, popular, -np.inf).argmax())
        for name in np.unique(departments)
    }
    favourites, first = users.table.columns["favourite"], int(popular.argmax())
    return np.array([best.get(one, first) for one in favourites], dtype=np.int64)


def lift(taste: float, seed: int, *, items: int = _ITEMS, users: int = _USERS) -> float:
    """Return how many times as much the best item of a user's department earns as the best."""
    shop = make_shop(items, seed=seed, weights=Weights(taste=taste))
    some = make_users(users, seed=seed)
    rates = shop.click_rates(some)
    popular = rates.mean(0)
    rows = department_rows(shop, some, popular)
    return float(rates[np.arange(users), rows].mean() / popular.max())


def calibrated_taste(*, items: int = _ITEMS, users: int = _USERS) -> float:
    """Return the taste whose mean lift over seeds is that of the real shop, by bisection."""
    low, high = 1.0, 40.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = np.mean([lift(middle, seed, items=items, users=users) for seed in SEEDS])
        low, high = (middle, high) if found < LIFT else (low, middle)
    return high


def print_calibration() -> None:
    """Print the lifts of the taste in use and of the guess before it, and the taste found."""
    lines = [
        (f"{seed}", *(f"{lift(taste, seed):.2f}" for taste in (GUESSED, TASTE))) for seed in SEEDS
    ]
    note = f"Lift of the favourite department; a real shop has {LIFT:.2f}"
    print_lines(note, ("seed", f"taste {GUESSED:g}", f"taste {TASTE:g}"), lines)
    print_lines("Calibrated", ("taste",), [(f"{calibrated_taste():.1f}",)])
