"""`python -m lab bench arm-effects`: what arms' own constants cost one decision, and what is found.

A bandit that learned is frozen twice: as it is, and with a constant of its own for each of many
arms, as wide as what features say. Both decide in alternation. The search with two lists is
compared with a scan of all arms under the same draws.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import click
import numpy as np
from numpy.typing import NDArray

from fastbandit.audit import audit
from fastbandit.policy import Policy
from fastbandit.reward.arm_constants import ArmConstants
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.reward.model import NeuralReward
from fastbandit.runtime.freezing import freeze
from fastbandit.runtime.frozen import FrozenBandit
from lab.benchmarks.reporting import Tick, arms_option, output_options, over_sizes, print_rows
from lab.benchmarks.setups import Contest, Setup, contest_of, silently
from lab.experiments.sizes import sizes_of

HEADINGS = ("arms", "chosen once", "p50 µs without", "p50 µs with", "with ÷ without", "q", "bytes")
_ASKED = 1_000
_CONTEXTS = 500
_MOST_CHOSEN = 30_000
_STEPS = 4


@dataclass(frozen=True)
class Row:
    """Median times of one decision, the quality of what is found, and bytes an arm."""

    arms: int
    chosen: int
    without_us: float
    with_us: float
    ratio: float
    quality: float
    bytes_per_arm: float

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        times = (f"{number:.1f}" for number in (self.without_us, self.with_us))
        found = (f"{self.ratio:.2f}", f"{self.quality:.4f}", f"{self.bytes_per_arm:.0f}")
        return (f"{self.arms:,}", f"{self.chosen:,}", *times, *found)


def with_constants(contest: Contest, chosen: int) -> Policy:
    """Return the policy with constants of so many arms, as wide as its scores."""
    policy = contest.policy
    assert isinstance(policy.model, NeuralReward)
    inputs, seeds = contest.inputs(50)
    score = policy.score(inputs, seeds=seeds)
    width = float(score(policy.arms.all().points[:, :2_000]).std(dim=1).mean())
    rng = np.random.default_rng(5)
    arms = contest.setup.arms
    counts, rewards = np.zeros(arms), np.zeros(arms)
    rows = rng.choice(arms, size=chosen, replace=False)
    counts[rows] = 1.0
    rewards[rows] = rng.normal(0.0, width * np.sqrt(2.0), size=chosen)
    no_rows = np.zeros(0, dtype=np.int64)
    model = HierarchicalReward(policy.model, None)
    model.constants = {
        0: ArmConstants(counts, rewards, np.zeros(arms), no_rows, width, noise=width**2, stamp=1)
    }
    return replace(policy, model=model)


def compare(arms: int, *, repeats: int, asked: int, tick: Tick = silently) -> Row:
    """Time decisions with and without constants in alternation, and audit the search with them."""
    contest = contest_of(Setup(arms=arms), contexts=_CONTEXTS, tick=tick)
    chosen = min(_MOST_CHOSEN, arms // 3)
    policy, plan = with_constants(contest, chosen), contest.bandit.blueprint
    frozen = [freeze(plan, one, 1, 0) for one in (contest.policy, policy)]
    for one in frozen:
        one.warm()
    tick("deciding in alternation")
    taken: Sequence[list[float]] = ([], [])
    for _ in range(repeats):
        for one, times in zip(frozen, taken, strict=True):
            times.append(1e6 * median_of(one, contest.contexts))
    tick("scanning all arms")
    inputs, seeds = contest.inputs(asked)
    found = audit(policy, inputs, seeds=seeds)
    without, with_own = (median(times) for times in taken)
    ratio = median(two / one for one, two in zip(*taken, strict=True))
    own = sum(array.nbytes for array in (frozen[1].parts[0].own_constants,) * 2) / arms
    return Row(arms, chosen, without, with_own, ratio, found.quality, frozen[1].bytes_per_arm + own)


def median_of(frozen: FrozenBandit, contexts: NDArray[np.float32]) -> float:
    """Return the median seconds of some decisions."""
    taken = []
    for number in range(_ASKED):
        started = time.perf_counter()
        frozen.select_one(contexts[number % len(contexts)], seed=number)
        taken.append(time.perf_counter() - started)
    return median(taken)


@click.command("arm-effects")
@arms_option("10000,100000,1000000")
@click.option("--repeats", default=15, show_default=True, type=click.IntRange(1))
@click.option("--audited", default=100, show_default=True, type=click.IntRange(1))
@output_options
def arm_effects_command(
    arms: str, repeats: int, audited: int, doc: Path | None, as_json: bool
) -> None:
    """Time one decision with arms' own constants and without, and audit what is found."""
    rows = over_sizes(
        "Arm effects",
        sizes_of(arms),
        lambda size, tick: compare(size, repeats=repeats, asked=audited, tick=tick),
        steps=_STEPS,
    )
    note = f"Median of {repeats} rounds of {_ASKED:,} decisions each; q of {audited} decisions"
    print_rows("arm-effects", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
