"""The bandit's value less that of the baseline beside it: value, interval and sentences."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fastbandit.evaluation.estimators import Contributions
from fastbandit.evaluation.intervals import normal_interval
from fastbandit.evaluation.shadow_comparison import ComparisonSums, difference_of, evidence_of

Table = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
NONE = ComparisonSums()


class Synthetic:
    """Four kinds of context, a few arms, and two policies that draw theirs."""

    def __init__(self, rng: np.random.Generator, *, arms: int = 6, is_binary: bool = True) -> None:
        self._rng, self._is_binary = rng, is_binary
        self.means = rng.uniform(size=(4, arms)) ** 2
        self.baseline = rng.dirichlet(np.full(arms, 3.0), 4)
        self.bandit = np.full((4, arms), 0.2 / arms)
        self.bandit[np.arange(4), self.means.argmax(1)] += 0.8
        self.difference = float(((self.bandit - self.baseline) * self.means).sum(1).mean())

    def table(self, count: int) -> Table:
        """Let the baseline decide: whether both matched, its propensities, and the rewards."""
        contexts = self._rng.integers(4, size=count)
        taken, other = (self._drawn(of, contexts) for of in (self.baseline, self.bandit))
        means = self.means[contexts, taken]
        noise = self._rng.uniform(size=count)
        rewards = (noise < means).astype(float) if self._is_binary else means + noise - 0.5
        return (taken == other).astype(float), self.baseline[contexts, taken], rewards

    def _drawn(self, policy: NDArray[np.float64], contexts: NDArray[np.int64]) -> NDArray[np.int64]:
        lots = self._rng.uniform(size=(len(contexts), 1))
        rows = (lots > policy[contexts].cumsum(1)).sum(1)
        return np.asarray(np.minimum(rows, policy.shape[1] - 1))


# -- sums


def test_sums_of_parts_add_up_to_those_of_the_whole(numbers: np.random.Generator) -> None:
    table = Synthetic(numbers).table(200)
    parts = [
        ComparisonSums.of(*(column[at : at + 50] for column in table)) for at in range(0, 200, 50)
    ]

    whole = ComparisonSums.of(*table)

    assert astuple(sum(parts, NONE)) == pytest.approx(astuple(whole))


def test_the_difference_equals_a_direct_computation_on_the_whole_table(
    numbers: np.random.Generator,
) -> None:
    matches, propensities, rewards = Synthetic(numbers, is_binary=False).table(500)
    weights = matches / propensities
    value = (weights * rewards).sum() / weights.sum()
    moves = weights * (rewards - value) / weights.mean() - (rewards - rewards.mean())

    difference = difference_of(ComparisonSums.of(matches, propensities, rewards))

    assert difference is not None
    assert difference.value == pytest.approx(value - rewards.mean())
    assert difference.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    half = 1.96 * moves.std() / np.sqrt(len(moves))
    assert (difference.high - difference.low) / 2 == pytest.approx(
        half, rel=0.2
    )  # a little wider, by design


def test_the_value_is_that_of_an_evaluation_of_the_same_log(numbers: np.random.Generator) -> None:
    matches, propensities, rewards = Synthetic(numbers).table(3_000)
    weights = matches / propensities
    terms = Contributions(weights * rewards, weights)
    low, high = normal_interval(terms)

    difference = difference_of(ComparisonSums.of(matches, propensities, rewards))

    assert difference is not None
    assert difference.bandit == pytest.approx(terms.value)
    assert (
        low
        < difference.baseline + difference.low
        < difference.baseline + difference.high
        < high + (high - low)
    )


@pytest.mark.parametrize(
    ("is_binary", "arms", "count"), [(True, 6, 400), (False, 6, 400), (True, 20, 2_000)]
)
def test_the_interval_holds_the_true_difference_about_as_often_as_it_says(
    is_binary: bool, arms: int, count: int, numbers: np.random.Generator
) -> None:
    worlds = [Synthetic(numbers, arms=arms, is_binary=is_binary) for _ in range(20)]
    found = [
        (synthetic, difference_of(ComparisonSums.of(*synthetic.table(count))))
        for synthetic in worlds * 15
    ]

    held = [
        difference is not None and difference.low <= synthetic.difference <= difference.high
        for synthetic, difference in found
    ]

    assert 0.90 <= np.mean(held) <= 0.99


def test_few_matches_that_earned_nothing_still_have_an_interval(
    numbers: np.random.Generator,
) -> None:
    rewards = (numbers.uniform(size=100) < 0.5).astype(float)
    matches = np.zeros(100)
    matches[np.flatnonzero(rewards == 0)[:5]] = 1.0

    difference = difference_of(ComparisonSums.of(matches, np.full(100, 0.05), rewards))

    assert difference is not None
    assert difference.high > 0.0 > difference.value


def test_the_difference_turns_round_with_who_decided(numbers: np.random.Generator) -> None:
    sums = ComparisonSums.of(*Synthetic(numbers).table(500))

    one, other = difference_of(sums), difference_of(sums, decided_by="bandit")

    assert one is not None
    assert other is not None
    assert (other.value, other.bandit) == pytest.approx((-one.value, one.baseline))
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))


def test_without_matches_there_is_no_difference() -> None:
    assert difference_of(ComparisonSums.of([0, 0, 0], [0.5, 0.5, 0.5], [1, 0, 1])) is None
    assert difference_of(NONE) is None


# -- in words


def test_where_there_is_no_difference_the_warning_names_whose_decisions_it_means() -> None:
    found = evidence_of(NONE, ComparisonSums.of([1, 0], [1.0, 1.0], [1, 0]), decided_by="bandit")

    assert found.warnings == ["Decisions of the bandit give no estimate of the difference."]


def test_good_evidence_comes_without_warnings(numbers: np.random.Generator) -> None:
    synthetic = Synthetic(numbers)

    found = evidence_of(ComparisonSums.of(*synthetic.table(20_000)), NONE, decided_by="baseline")

    assert found.warnings == []
    assert found.summary[0].startswith(
        "The baseline decided 20,000 times; the bandit named the same"
    )
    assert "a difference of +" in found.summary[1]


def test_a_small_effective_sample_is_not_to_be_trusted(numbers: np.random.Generator) -> None:
    matches = np.zeros(1_000)
    matches[:12] = 1.0
    rewards = numbers.uniform(size=1_000)

    found = evidence_of(
        ComparisonSums.of(matches, np.full(1_000, 0.012), rewards), NONE, decided_by="baseline"
    )

    assert "Effective sample size 12 of 1,000: do not trust this." in found.warnings


def test_a_baseline_that_never_takes_some_arms_is_noticed(numbers: np.random.Generator) -> None:
    matches = (numbers.uniform(size=5_000) < 0.3).astype(float)

    found = evidence_of(
        ComparisonSums.of(matches, np.ones(5_000), numbers.uniform(size=5_000)),
        NONE,
        decided_by="baseline",
    )

    assert any("in place of 1" in text for text in found.warnings)


def test_without_propensities_agreement_stands_in_for_a_difference() -> None:
    unknown = ComparisonSums.of([1, 1, 0, 0], [1, 1, 1, 1], [1.0, 0.5, 0.25, 0.0])

    found = evidence_of(NONE, unknown, decided_by="baseline")

    assert found.difference is None
    assert (found.matches, found.count, found.known) == (2, 4, 0)
    assert (found.agreed, found.differed) == (0.75, 0.125)
    assert "the propensities of the baseline are not known" in found.summary[1]


def test_rewards_that_may_still_come_are_mentioned() -> None:
    found = evidence_of(NONE, ComparisonSums(n=10, m=5, pending=4.0), decided_by="baseline")

    assert found.summary[-1].startswith("40 % of these decisions may still get a reward")
