"""`python -m lab routing`: prompts among language models within a budget, beside other routers.

All routers meet the same prompts, ratings and costs, and the same `Budget` weighs their scores.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit import Budget
from fastbandit.cores import one_thread
from fastbandit.progress import progress_bar
from lab.experiments.comparison import estimate
from lab.experiments.routers import BanditRouter, FixedRouter, LinearRouter, Router
from lab.experiments.routing_data import Floats, Rows, Traffic, make_traffic
from lab.printing import print_lines

SHARE = 0.9
"""What a request may cost on average."""
_BATCH = 100
_SAMPLE = 500  # prompts of before, without ratings, from which the schema is inferred
_FIRST = 100  # seed
_TUNING = range(1_000, 1_006)  # seeds of other traffic
_KNOWN = 7  # models that are there from the start

Terms = dict[str, float]
_SCALES, _WIDTHS = (0.1, 0.2, 0.3), (0.3, 0.6, 0.9, 1.2)
GRIDS: dict[str, list[Terms]] = {
    "fastbandit": [
        {"units": u, kind: amount}
        for u, (kind, amounts) in product((0, 64), (("scale", _SCALES), ("width", _WIDTHS)))
        for amount in amounts
    ],
    "LinUCB": [{"width": w, "ridge": r} for w, r in product((0.2, 0.4, 0.6, 0.8), (0.3, 1.0, 3.0))],
    "epsilon-greedy": [
        {"epsilon": e, "ridge": r} for e, r in product((0.02, 0.05, 0.1, 0.2), (0.3, 1.0, 3.0))
    ],
}
"""What is tried by `--tune`, on other traffic."""
TUNED: dict[str, Terms] = {
    "fastbandit": {"units": 0, "width": 0.9},
    "LinUCB": {"width": 0.6, "ridge": 1.0},
    "epsilon-greedy": {"epsilon": 0.1, "ridge": 0.3},
}
"""What did best there."""


@dataclass(frozen=True, eq=False)
class Played:
    """The models that were chosen, the weight of cost then, and what came of it."""

    rows: Rows
    weights: Floats
    qualities: Floats
    costs: Floats
    total: float

    @property
    def quality(self) -> float:
        return float(self.qualities.mean())

    @property
    def spent(self) -> float:
        """The share of the budget that was spent."""
        return float(self.costs.sum() / self.total)


def play(
    router: Router,
    traffic: Traffic,
    budget: Budget,
    *,
    restart_at: int | None = None,
    days: int | None = None,
) -> Played:
    """Route all traffic; ratings come when they come, costs at once.

    At one request the process may start anew. With `days`, so many equal ones begin in turn.
    """
    count, rows = len(traffic), np.zeros(len(traffic), dtype=np.int64)
    weights, taken = np.zeros(count), np.arange(count)
    for first in range(0, count, _BATCH):
        last = min(first + _BATCH, count)
        for row in np.flatnonzero((traffic.joins > first - _BATCH) & (traffic.joins <= first)):
            if traffic.joins[row]:
                router.add(int(row))
        told = np.flatnonzero((traffic.told > first - _BATCH) & (traffic.told <= first))
        told = told[told < first]
        if len(told):
            router.learn(traffic.rows(told), rows[told], traffic.observed[told, rows[told]])
        if restart_at is not None and first <= restart_at < last:
            budget = _restarted(router, budget)
        scores = router.scores(traffic.table(first, last))
        for request in range(first, last):
            if days is not None and request % (count // days) == 0:
                budget.begin_day()
            weights[request] = budget.weight
            is_live = np.isfinite(scores[request - first])
            live = np.flatnonzero(is_live)
            expected = traffic.expected[request, live]
            best = budget.choose(scores[request - first, live], expected)[0]
            rows[request] = live[best]
            budget.observe(traffic.costs[request, rows[request]])
    costs = traffic.costs[taken, rows]
    return Played(rows, weights, traffic.qualities[taken, rows], costs, budget.total)


def _restarted(router: Router, budget: Budget) -> Budget:
    router.restart()
    with tempfile.TemporaryDirectory() as folder:
        budget.save(Path(folder) / "budget.json")
        return Budget.load(Path(folder) / "budget.json")


# -- routers


def router_of(name: str, traffic: Traffic, *, seed: int, terms: Terms | None = None) -> Router:
    """Return a router by its name; `terms` are its settings, those of `TUNED` unless given."""
    sample = make_traffic(_SAMPLE, seed=seed + 5_000).prompts
    known: dict[str, Any] = {"models": _KNOWN, "seed": seed}
    chosen = TUNED.get(name, {}) if terms is None else terms
    if name == DEFAULTS:
        return BanditRouter(sample, **known)
    if name == "fastbandit":
        known["units"] = int(chosen["units"])
        return BanditRouter(sample, **known, scale=chosen.get("scale"), width=chosen.get("width"))
    if name in ("LinUCB", "epsilon-greedy"):
        return LinearRouter(sample, **known, **dict[str, Any](chosen))
    is_live = traffic.joins[None, :] <= np.arange(len(traffic))[:, None]
    scores = traffic.qualities
    if name == "random":
        scores = np.random.default_rng([seed, 9]).random(scores.shape)
    return FixedRouter(np.where(is_live, scores, -np.inf))


ROUTERS = ("fastbandit", "LinUCB", "epsilon-greedy", "random", "oracle")
DEFAULTS = "fastbandit, defaults"


def played(name: str, traffic: Traffic, *, seed: int, terms: Terms | None = None) -> Played:
    """Let a router play traffic within the budget that all have."""
    budget = Budget(SHARE * len(traffic), len(traffic))
    return play(router_of(name, traffic, seed=seed, terms=terms), traffic, budget)


def best_fixed(traffic: Traffic, *, models: int) -> tuple[float, float]:
    """Return quality and share spent of the best fixed mixture of so many models, in hindsight.

    It may change once, when the newcomer joins; it is within the budget before and after.
    """
    joined, found = int(traffic.joins.max()), []
    for first, last in ((0, joined), (joined, len(traffic))):
        live = np.flatnonzero(traffic.live(first))
        both = (traffic.qualities[first:last], traffic.costs[first:last])
        quality, cost = (table[:, live].mean(axis=0) for table in both)
        best = max(_mixtures(quality, cost, models=models))
        found.append(np.array(best) * (last - first))
    quality, cost = np.sum(found, axis=0) / len(traffic)
    return float(quality), float(cost / SHARE)


def _mixtures(quality: Floats, cost: Floats, *, models: int) -> list[tuple[float, float]]:
    """Return quality and cost of mixtures that keep to the budget on average."""
    found = []
    for one, other in combinations_with_replacement(np.argsort(cost), 2):
        share = (
            1.0 if cost[other] <= SHARE else (SHARE - cost[one]) / (cost[other] - cost[one] or 1)
        )
        if (models == 1 and one != other) or share < 0:
            continue
        mixed = [(1 - share) * table[one] + share * table[other] for table in (quality, cost)]
        found.append((float(mixed[0]), float(mixed[1])))
    return found


# -- the table


@dataclass(frozen=True)
class Row:
    """What a router came to with one seed."""

    seed: int
    router: str
    quality: float
    spent: float


@dataclass(frozen=True)
class Line:
    """Means over seeds; `ahead` is fastbandit's quality less its own, with a 95 % interval."""

    router: str
    quality: float
    spent: float
    furthest: float
    """From the budget, of any seed."""
    ahead: float
    low: float
    high: float


def compare(
    requests: int,
    seeds: Sequence[int],
    *,
    routers: Sequence[str] = ROUTERS,
    is_shown: bool = False,
) -> list[Row]:
    """Play routers on the same traffic, with each seed, beside what is best in hindsight."""
    rows = []
    one_thread()
    with progress_bar("Routing", is_shown=is_shown) as progress:
        for number, seed in enumerate(seeds):
            traffic = make_traffic(requests, seed=seed)
            for step, name in enumerate(routers):
                done = played(name, traffic, seed=seed)
                rows.append(Row(seed, name, done.quality, done.spent))
                progress(number * len(routers) + step + 1, len(seeds) * len(routers), name)
            for name, models in (("best single model", 1), ("best mixture of two", 2)):
                rows.append(Row(seed, name, *best_fixed(traffic, models=models)))
    return rows


def lines_of(rows: Sequence[Row]) -> list[Line]:
    """Return a line a router, in the order they were played."""
    own = np.array([row.quality for row in rows if row.router == "fastbandit"])
    lines = []
    for name in dict.fromkeys(row.router for row in rows):
        mine = [row for row in rows if row.router == name]
        quality, spent = (np.array([getattr(row, key) for row in mine]) for key in _MEASURED)
        gap = estimate([float(one) for one in own - quality])
        middle, half = gap.mean, gap.half or 0.0
        both = (float(quality.mean()), float(spent.mean()), float(np.abs(spent - 1).max()))
        lines.append(Line(name, *both, middle, middle - half, middle + half))
    return lines


_MEASURED = ("quality", "spent")


def tune(requests: int) -> dict[str, list[tuple[Terms, float]]]:
    """Return the mean quality of each setting of each router, best first, on other traffic."""
    every = [(seed, make_traffic(requests, seed=seed)) for seed in _TUNING]
    found: dict[str, list[tuple[Terms, float]]] = {}
    one_thread()
    for name, grid in GRIDS.items():
        tried = []
        for terms in grid:
            each = [played(name, traffic, seed=s, terms=terms) for s, traffic in every]
            tried.append((terms, float(np.mean([one.quality for one in each]))))
        found[name] = sorted(tried, key=lambda one: -one[1])
    return found


@click.command("routing")
@click.option("--requests", default=10_000, type=click.IntRange(400), show_default=True)
@click.option("--seeds", default=10, type=click.IntRange(1), show_default=True)
@click.option("--defaults", is_flag=True, help="Play a bandit with default settings, too.")
@click.option("--tune", "is_tuning", is_flag=True, help="Try settings of routers, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def routing_command(
    requests: int, seeds: int, *, defaults: bool, is_tuning: bool, as_json: bool
) -> None:
    """Route prompts among language models within a budget, beside other routers.

    Qualities are true means; each router has the same budget, and the same rule to keep it.
    """
    if is_tuning:
        click.echo(json.dumps(tune(requests), indent=2))
        return
    chosen, routers = range(_FIRST, _FIRST + seeds), (*ROUTERS, *[DEFAULTS] * defaults)
    rows = compare(requests, chosen, routers=routers, is_shown=not as_json)
    if as_json:
        lines = [asdict(line) for line in lines_of(rows)]
        click.echo(json.dumps({"lines": lines, "rows": [asdict(row) for row in rows]}))
        return
    print_lines(
        f"{requests:,} requests, {seeds} seeds: mean quality at a budget of {SHARE} a request",
        ("router", "quality", "spent", "furthest from budget", "fastbandit is ahead by", "95 %"),
        [_written(line) for line in lines_of(rows)],
    )


def _written(line: Line) -> list[str]:
    ahead = [f"{line.ahead:+.4f}", f"{line.low:+.4f} to {line.high:+.4f}"]
    is_own = line.router == "fastbandit"
    shown = [f"{line.quality:.4f}", f"{line.spent:.1%}", f"{line.furthest:.2%}"]
    return [line.router, *shown, *(["", ""] if is_own else ahead)]
