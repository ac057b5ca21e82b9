"""Scores by NumPy are those that compiled code decides by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hardly_trained import CONTEXTS, trained

pytestmark = pytest.mark.usefixtures("hardly_any_training")

POSTERIORS: dict[str, dict[str, Any]] = {
    "effects of ids": {"arms": None, "ids": list("abcde")},
    "features and effects": {},
    "features and ids": {"embed_ids": True},
    "dropout": {"posterior": "dropout"},
    "last layer": {"posterior": "last-layer"},
    "heads": {"posterior": "bootstrap"},
    "bound": {"posterior": "gradient", "exploration": "ucb", "search": "generator"},
    "bounded effects": {"arms": None, "ids": list("abcde"), "exploration": "ucb"},
    "mean": {"posterior": "dropout", "exploration": "greedy"},
    "binary": {"posterior": "dropout", "reward": "binary"},
    "ids in a network": {"arms": None, "ids": list("abcde"), "posterior": "dropout"},
}


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("seed", [None, 2**63 + 5])
def test_the_score_is_that_of_the_decision(name: str, seed: int | None) -> None:
    frozen = trained(**POSTERIORS[name]).freeze()
    chosen = frozen.select_one(CONTEXTS[0], seed=seed or 0, explore=seed is not None)

    found = frozen.explain(CONTEXTS[0], chosen.arm, seed=seed)

    assert found.score == pytest.approx(chosen.score, abs=2e-5)
    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)


@pytest.mark.parametrize("name", POSTERIORS)
def test_frozen_and_torch_explain_alike(name: str) -> None:
    bandit = trained(**POSTERIORS[name])
    frozen = bandit.freeze()
    arm = frozen.select_one(CONTEXTS[1], seed=9).arm

    ours, theirs = (one.explain(CONTEXTS[1], arm, seed=9) for one in (frozen, bandit))

    assert list(ours.contributions) == list(theirs.contributions)
    assert ours.contributions == pytest.approx(theirs.contributions, abs=2e-5)
    assert ours.runner_up == theirs.runner_up
    assert ours.expected == pytest.approx(theirs.expected, abs=2e-5)


@pytest.mark.parametrize("name", [name for name in POSTERIORS if name != "mean"])
def test_the_interval_holds_the_expected_reward_or_lies_close(name: str) -> None:
    found = trained(**POSTERIORS[name]).freeze().explain(CONTEXTS[0], _first(name))

    assert found.interval is not None
    low, high = found.interval
    assert low <= high
    assert low - (high - low) <= found.expected <= high + (high - low)


def _first(name: str) -> Any:
    return "a" if POSTERIORS[name].get("ids") else 0


def test_a_mean_has_no_interval() -> None:
    assert trained(**POSTERIORS["mean"]).freeze().explain(CONTEXTS[0], 0).interval is None


def test_other_seeds_move_the_score_and_not_the_expected_reward() -> None:
    frozen = trained(posterior="last-layer").freeze()

    found = [frozen.explain(CONTEXTS[0], 3, seed=seed) for seed in (1, 2)]

    assert found[0].expected == found[1].expected
    assert not np.isclose(found[0].score, found[1].score)
