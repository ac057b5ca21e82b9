"""Explanations of a frozen bandit: which features arms have, and whom they are compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hardly_trained import CONTEXT_KINDS, CONTEXTS, FEW, trained

from fastbandit import FrozenBandit
from fastbandit.errors import SettingError, UnknownArmError
from fastbandit.runtime.explanation import ARM, OWN

pytestmark = pytest.mark.usefixtures("hardly_any_training")


@pytest.mark.parametrize("name", CONTEXT_KINDS)
def test_every_kind_of_contexts_is_explained(name: str) -> None:
    kind, contexts = CONTEXT_KINDS[name]
    frozen = trained(contexts, context=kind).freeze()
    one = tuple(part[:1] for part in contexts) if isinstance(contexts, tuple) else contexts[:1]
    one = one[0] if name == "dense" else one

    found = frozen.explain(one, 3, seed=5)

    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)


def test_features_are_named_by_column() -> None:
    names = list(trained(posterior="dropout").freeze().explain(CONTEXTS[0], 3).contributions)

    assert names == ["base", *(f"context[{n}]" for n in range(4)), *(f"arm[{n}]" for n in range(5))]


def test_features_that_coordinates_do_not_tell_come_together_unless_given() -> None:
    arms = np.random.default_rng(0).normal(size=(60, 40)).astype(np.float32)
    frozen = trained(arms=arms, posterior="dropout").freeze()

    found, given = (frozen.explain(CONTEXTS[0], 3, features=f) for f in (None, arms[3:4]))

    assert ARM in found.contributions
    assert "arm[39]" in given.contributions
    assert given.score == found.score


def test_the_typical_context_contributes_nothing() -> None:
    parts = trained(posterior="dropout").freeze().explain(None, 3).contributions

    assert all(abs(parts[f"context[{n}]"]) < 1e-9 for n in range(4))


def test_arms_known_by_ids_have_something_of_their_own() -> None:
    frozen = trained(arms=None, ids=list("abcde")).freeze()

    assert frozen.explain(CONTEXTS[0], "b").contributions[OWN] != 0


def test_the_runner_up_is_eligible() -> None:
    frozen = trained().freeze()

    assert frozen.explain(CONTEXTS[0], 3, eligible=[3, 4]).runner_up == 4
    assert frozen.explain(CONTEXTS[0], 3, eligible=[3]).runner_up is None


def test_the_propensity_is_estimated_where_draws_are_given() -> None:
    frozen = trained(arms=None, ids=list("abcde")).freeze()

    assert frozen.explain(CONTEXTS[0], "b").propensity is None
    expected = frozen.propensities(CONTEXTS[0], draws=50).of("b")
    assert frozen.explain(CONTEXTS[0], "b", draws=50).propensity == expected


def test_it_is_the_same_after_a_save(tmp_path: Path) -> None:
    frozen = trained(posterior="dropout").freeze()
    frozen.save(tmp_path / "frozen")

    again = FrozenBandit.load(tmp_path / "frozen").explain(CONTEXTS[0], 3, seed=1)

    assert again == frozen.explain(CONTEXTS[0], 3, seed=1)


def test_an_arm_added_later_is_explained() -> None:
    frozen = trained().freeze()
    frozen.add_arms(FEW[:1] + 1)

    found = frozen.explain(CONTEXTS[0], len(FEW))

    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)


def test_an_unknown_arm_has_no_explanation() -> None:
    with pytest.raises(UnknownArmError):
        trained().freeze().explain(CONTEXTS[0], "nobody")


def test_a_bandit_that_learned_nothing_has_no_explanation() -> None:
    from fastbandit import Bandit

    with pytest.raises(SettingError, match="learned something"):
        Bandit(ids=["a", "b"], context=4).freeze().explain(CONTEXTS[0], "a")


def test_an_explanation_takes_no_seed_of_the_bandit() -> None:
    frozen, other = trained().freeze(), trained().freeze()
    frozen.explain(CONTEXTS[0], 3)

    assert frozen.select_one(CONTEXTS[0]).seed == other.select_one(CONTEXTS[0]).seed
