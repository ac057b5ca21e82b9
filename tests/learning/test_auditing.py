"""Decisions that were served are judged by the best arm under the same seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.learning.auditing import Audits, is_plain, own_choice, served_qualities
from fastbandit.storage.events import DecisionMade

CONTEXTS, ARMS = vectors_of(20, 2, seed=1), vectors_of(30, 3, seed=2)


@pytest.fixture(scope="module")
def bandit(little_training: None) -> Bandit:
    bandit = Bandit(arms=ARMS, context=2, reward="real", search="exhaustive")
    bandit.update(contexts=CONTEXTS, arms=list(range(20)), rewards=CONTEXTS[:, 0])
    return bandit


def decision(row: int, arm: Any, seed: int = 0, **changes: Any) -> DecisionMade:
    terms = {"version": 1, "catalogue": 0, "wait": 1, **changes}
    return DecisionMade(f"d{row}", CONTEXTS[row].tolist(), [arm], [0.0], seed, **terms)


def served(bandit: Bandit) -> list[DecisionMade]:
    chosen = bandit.freeze().select(CONTEXTS)
    numbered = enumerate(zip(chosen.arms, chosen.seeds.tolist(), strict=True))
    return [decision(row, arm, seed) for row, (arm, seed) in numbered]


def test_the_best_arms_have_a_quality_of_one(bandit: Bandit) -> None:
    assert served_qualities(bandit, served(bandit), touched=()) == pytest.approx(1, abs=1e-3)


def test_all_arms_together_have_a_quality_of_zero(bandit: Bandit) -> None:
    every = [decision(0, arm, seed=3) for arm in range(30)]

    assert served_qualities(bandit, every, touched=()).mean() == pytest.approx(0, abs=1e-4)


def test_arms_that_changed_since_count_neither_way(bandit: Bandit) -> None:
    made = served(bandit)
    best = made[0].arms[0]
    others = [arm for arm in range(30) if arm != best]
    every = [decision(0, arm, seed=made[0].seed) for arm in others]

    assert len(served_qualities(bandit, made[:1], touched={best})) == 0
    assert len(served_qualities(bandit, [decision(0, "unknown")], touched=())) == 0
    assert served_qualities(bandit, every, touched={best}).max() == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "plain"),
    [
        ({}, True),
        ({"eligible": [1]}, False),
        ({"explored": False}, False),
        ({"degraded": True}, False),
        ({"epsilon": 1.0}, False),
        ({"version": 0}, False),
        ({"decided_by": "baseline", "other": 2}, False),
    ],
)
def test_only_plain_decisions_are_judged(changes: dict[str, Any], plain: bool) -> None:
    assert is_plain(decision(0, 1, **changes)) is plain


def test_beside_a_baseline_the_choice_of_the_bandit_is_judged() -> None:
    made = decision(0, 1, decided_by="baseline", other=2, propensities=[0.5])

    own = own_choice(made)

    assert (own.arms, is_plain(own)) == ([2], True)
    assert own_choice(own) is own


def test_so_many_are_judged_and_no_more(bandit: Bandit) -> None:
    audits = Audits(1, bandit, most=18)
    assert audits.add(served(bandit), touched=())
    assert audits.add(served(bandit), touched=())
    assert not audits.add(served(bandit), touched=())

    notes = audits.notes()
    assert (notes["version"], notes["count"]) == (1, 18)
    assert np.isclose(notes["quality"], 1, atol=1e-3)
