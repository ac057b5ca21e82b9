"""`python -m lab experiment multiple-plays`: how many arms to play where each play costs.

The settings are those of Fouché, Komiyama and Böhm (2019): arms with Bernoulli rewards whose means
are evenly spread over (0, 1), static, or with the best 30 % worth nothing in the middle third of
the rounds. Rewards of a round are the same for all policies of a seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import click
import numpy as np
from numpy.typing import NDArray

from fastbandit.baselines import LinearTS
from fastbandit.cores import one_thread
from fastbandit.errors import SettingError
from fastbandit.progress import Progress, progress_bar
from lab.baselines.scaling_mab import (
    FixedPlays,
    Floats,
    KLScaling,
    MultiplePlayTS,
    Rows,
    SharedWindow,
    best_plays,
)
from lab.benchmarks.reporting import check_marks, fill_marks, output_options
from lab.experiments.comparison import Estimate, estimate
from lab.experiments.report_tables import Table, plus_minus

SETTINGS = ("static", "changes")
MARKS = ("<!-- experiment multiple-plays -->", "<!-- end of experiment multiple-plays -->")
_LOST = 0.3  # the share of arms, the best ones, that earn nothing for a while
_LATE = 0.1  # the share of the rounds at the end that "plays at the end" is of
_EVERY = 10  # rounds between two updates of LinearTS
_HALF_LIFE = 500  # rounds, for LinearTS that forgets
_BERNOULLI = 0.5  # the largest deviation of a reward of 0 or 1


# -- the arms


@dataclass(frozen=True)
class Arms:
    """Arms with Bernoulli rewards, best first; some change where the setting says so."""

    setting: str
    arms: int
    rounds: int

    def means(self, number: int) -> Floats:
        """Return the expected reward of each arm in a round."""
        count = self.arms
        means = 1.0 - np.arange(count) / count - 1.0 / (3.0 * count)
        if self.setting == "changes" and self.rounds // 3 <= number < 2 * self.rounds // 3:
            means[: int(_LOST * count)] = 0.0
        return means

    def spells(self) -> list[range]:
        """Return the rounds between changes."""
        ends = (0, self.rounds // 3, 2 * self.rounds // 3, self.rounds)
        if self.setting == "static":
            return [range(self.rounds)]
        return [range(*pair) for pair in pairwise(ends) if len(range(*pair))]


class Player(Protocol):
    """Chooses several arms in a round, and learns what they earned."""

    def select(self) -> Rows: ...

    def update(self, rows: Rows, rewards: Floats) -> None: ...


class LinearPlays:
    """LinearTS of the product with `k` plays: a constant context, learned every 10 rounds."""

    def __init__(self, arms: int, *, plays: int, seed: int, half_life: float | None) -> None:
        self._bandit = LinearTS(
            ids=range(arms),
            disjoint=True,
            context=1,
            seed=seed,
            scale=_BERNOULLI,
            half_life=None if half_life is None else half_life * plays,
        )
        self._plays = plays
        self._chosen: list[Rows] = []
        self._seen: list[tuple[Rows, Floats]] = []

    def select(self) -> Rows:
        """Return the next k arms; they are chosen for 10 rounds at once."""
        if not self._chosen:
            decision = self._bandit.select(np.ones((_EVERY, 1)), k=self._plays)
            self._chosen = list(np.asarray(decision.rows, dtype=np.int64))
        return self._chosen.pop()

    def update(self, rows: Rows, rewards: Floats) -> None:
        """Learn 10 rounds at once."""
        self._seen.append((rows, rewards))
        if len(self._seen) == _EVERY:
            taken, earned = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
            self._bandit.update(contexts=np.ones((len(taken), 1)), arms=taken, rewards=earned)
            self._seen.clear()


# -- the policies


@dataclass(frozen=True)
class Task:
    """What a policy is made for: arms, what a play costs, a seed."""

    arms: Arms
    cost: float
    seed: int

    @property
    def known_plays(self) -> int:
        """The best number of plays in the first round."""
        return best_plays(self.arms.means(0), self.cost)

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 1])


@dataclass(frozen=True)
class Entry:
    """A policy of the comparison; one that does not ask for the cost plays once for all costs."""

    name: str
    make: Callable[[Task], Player]
    asks_cost: bool = True
    settings: tuple[str, ...] = SETTINGS


def _sampling(task: Task, plays: int) -> Player:
    return MultiplePlayTS(task.arms.arms, scaling=FixedPlays(plays), rng=task.rng)


def _scaling(task: Task, window: SharedWindow | None) -> Player:
    scaling = KLScaling(task.cost)
    return MultiplePlayTS(task.arms.arms, scaling=scaling, rng=task.rng, window=window)


def _linear(task: Task, half_life: float | None) -> Player:
    plays = task.known_plays
    return LinearPlays(task.arms.arms, plays=plays, seed=task.seed, half_life=half_life)


ENTRIES = (
    Entry("one arm (TS)", lambda task: _sampling(task, 1), asks_cost=False),
    Entry("all arms", lambda task: _sampling(task, task.arms.arms), asks_cost=False),
    Entry("MP-TS, L* given", lambda task: _sampling(task, task.known_plays)),
    Entry("LinearTS, L* given", lambda task: _linear(task, None)),
    Entry("LinearTS fading, L* given", lambda task: _linear(task, _HALF_LIFE), True, ("changes",)),
    Entry("S-TS", lambda task: _scaling(task, None)),
    Entry("S-TS-ADWIN", lambda task: _scaling(task, SharedWindow(task.arms.arms))),
)


# -- the loop


@dataclass(frozen=True)
class Trace:
    """Of each round: the plays, what they are expected to earn, what the best so many would."""

    plays: NDArray[np.int64]
    earned: Floats
    best: Floats

    @property
    def arm_regret(self) -> float:
        """What the best arms would have earned with the same plays, less what was earned."""
        return max(0.0, float((self.best - self.earned).sum()))  # rounding leaves less than none


def play(arms: Arms, player: Player, *, seed: int) -> Trace:
    """Let a policy play all rounds."""
    rng = np.random.default_rng([seed, 0])
    plays = np.empty(arms.rounds, dtype=np.int64)
    earned, best = np.empty(arms.rounds), np.empty(arms.rounds)
    for spell in arms.spells():
        means = arms.means(spell.start)
        sums = np.sort(means)[::-1].cumsum()
        for number in spell:
            rewards = (rng.random(arms.arms) < means).astype(np.float64)
            rows = player.select()
            player.update(rows, rewards[rows])
            plays[number] = len(rows)
            earned[number], best[number] = means[rows].sum(), sums[len(rows) - 1]
    return Trace(plays, earned, best)


@dataclass(frozen=True)
class Row:
    """What a policy did where a play costs so much: means over seeds, with 95 % intervals."""

    setting: str
    cost: float
    policy: str
    seeds: int
    best_plays: float
    plays: Estimate
    late_plays: Estimate
    reward: Estimate
    mean_of_play: Estimate
    arm_regret: Estimate
    play_regret: Estimate

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        numbers = (
            (self.plays, ",.1f"),
            (self.late_plays, ",.1f"),
            (self.reward, ",.2f"),
            (self.mean_of_play, ".3f"),
            (self.arm_regret, ",.0f"),
            (self.play_regret, ",.0f"),
        )
        texts = (plus_minus(found, form) for found, form in numbers)
        return (f"{self.cost:g}", self.policy, f"{self.best_plays:,.1f}", *texts)


def row_of(arms: Arms, cost: float, policy: str, traces: Sequence[Trace]) -> Row:
    """Summarise what a policy did over seeds, beside the best numbers of plays."""
    best = np.empty(arms.rounds)
    for spell in arms.spells():
        best[spell.start : spell.stop] = best_plays(arms.means(spell.start), cost)
    late = arms.rounds - max(1, int(_LATE * arms.rounds))
    return Row(
        arms.setting,
        cost,
        policy,
        len(traces),
        float(best.mean()),
        estimate([float(one.plays.mean()) for one in traces]),
        estimate([float(one.plays[late:].mean()) for one in traces]),
        estimate([float(one.earned.mean()) for one in traces]),
        estimate([float(one.earned.sum() / one.plays.sum()) for one in traces]),
        estimate([one.arm_regret for one in traces]),
        estimate([float(np.abs(best - one.plays).sum()) for one in traces]),
    )


def compare(
    settings: Sequence[Arms], costs: Sequence[float], seeds: int, *, progress: Progress
) -> Iterator[Row]:
    """Play all policies in all settings, a row for each cost."""
    todo = [(arms, one) for arms in settings for one in ENTRIES if arms.setting in one.settings]
    steps = seeds * sum(len(costs) if entry.asks_cost else 1 for _, entry in todo)
    done = 0
    for arms, entry in todo:
        traces: list[Trace] = []
        for cost in costs:
            if entry.asks_cost or not traces:
                traces = []
                for seed in range(seeds):
                    progress(done, steps, f"{arms.setting}: {entry.name}")
                    player = entry.make(Task(arms, cost, seed))
                    traces.append(play(arms, player, seed=seed))
                    done += 1
            yield row_of(arms, cost, entry.name, traces)


# -- the command


HEADINGS = (
    "cost",
    "policy",
    "best plays",
    "plays",
    "plays at the end",
    "reward",
    "mean of a play",
    "regret of arms",
    "regret of plays",
)


def table_of(rows: Sequence[Row], setting: str) -> Table:
    """Return the table of one setting, by cost."""
    mine = sorted((row for row in rows if row.setting == setting), key=lambda row: -row.cost)
    return Table(HEADINGS, tuple(row.cells() for row in mine), names=2)


def text_of(rows: Sequence[Row], *, rounds: int, arms: int) -> str:
    """Format all rows, a table for each setting."""
    parts = []
    for setting in dict.fromkeys(row.setting for row in rows):
        seeds = next(row.seeds for row in rows if row.setting == setting)
        said = f"**{setting}**: {arms:,} arms, {rounds:,} rounds, seeds 0 to {seeds - 1}"
        parts.append(f"{said}\n\n{table_of(rows, setting).to_markdown()}")
    return "\n\n".join(parts)


def costs_of(text: str) -> list[float]:
    """Read what a play costs, separated by commas, highest first."""
    try:
        costs = sorted({float(cost) for cost in text.split(",")}, reverse=True)
    except ValueError:
        costs = [-1.0]
    if not 0.0 <= costs[-1] <= costs[0] < 1.0:
        raise SettingError(
            f"--costs needs numbers of at least 0 and below 1, separated by commas: got {text!r}. "
            f"Write 0.9,0.7 for example."
        )
    return costs


@click.command("multiple-plays")
@click.option("--costs", default="0.9,0.8,0.7,0.6,0.5", show_default=True, help="Costs of a play.")
@click.option("--arms", default=100, show_default=True, type=click.IntRange(2), help="Arms.")
@click.option("--rounds", default=10_000, show_default=True, type=click.IntRange(3), help="Rounds.")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="Seeds.")
@output_options
def multiple_plays_command(
    costs: str, arms: int, rounds: int, seeds: int, doc: Path | None, as_json: bool
) -> None:
    """Play several arms a round where each play costs, beside one arm, all, and a given number."""
    chosen = costs_of(costs)
    check_marks(doc, marks=MARKS)
    one_thread()
    settings = [Arms(setting, arms, rounds) for setting in SETTINGS]
    with progress_bar("Plays") as progress:
        rows = list(compare(settings, chosen, seeds, progress=progress))
    text = text_of(rows, rounds=rounds, arms=arms)
    if doc is not None:
        fill_marks(doc, text, marks=MARKS, command="experiment multiple-plays")
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=1, allow_nan=False))
    else:
        click.echo(text)
