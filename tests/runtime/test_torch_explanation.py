"""Explanations through torch: of boxes, of few arms, and by what decides."""

from __future__ import annotations

import numpy as np
import pytest
from hardly_trained import CONTEXTS, REWARDS, trained

from fastbandit import Bandit, Box
from fastbandit.errors import InputError, SettingError, ShapeError

pytestmark = pytest.mark.usefixtures("hardly_any_training")


@pytest.fixture
def box() -> Bandit:
    bandit = Bandit(arms=Box([0.0, 0.0], [1.0, 2.0]), context=4, reward="real", seed=1)
    taken = bandit.select(CONTEXTS)
    bandit.update(contexts=CONTEXTS, arms=taken.arms, rewards=REWARDS)
    return bandit


def test_a_point_of_a_box_is_explained(box: Bandit) -> None:
    chosen = box.select(CONTEXTS[:1], seeds=np.array([5], np.uint64))

    found = box.explain(CONTEXTS[0], chosen.arms[0], seed=5)

    assert found.score == pytest.approx(float(chosen.scores[0, 0]), abs=1e-4)
    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)
    assert {"arm[0]", "arm[1]"} <= set(found.contributions)
    assert isinstance(found.as_dict()["arm"], list)


def test_a_point_outside_of_the_box_is_rejected(box: Bandit) -> None:
    with pytest.raises(InputError):
        box.explain(CONTEXTS[0], [9.0, 9.0])


def test_a_point_of_a_box_has_no_propensity(box: Bandit) -> None:
    with pytest.raises(SettingError, match="needs a catalogue"):
        box.explain(CONTEXTS[0], [0.5, 0.5], draws=10)


def test_the_propensity_is_a_share_of_draws() -> None:
    bandit = trained(arms=None, ids=list("abcde"))

    found = [bandit.explain(CONTEXTS[0], arm, draws=40).propensity for arm in "abcde"]

    assert sum(one or 0.0 for one in found) == pytest.approx(1.0)


def test_compiled_code_explains_with_the_features_of_the_catalogue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bandit = trained(posterior="dropout")
    by_torch = bandit.explain(CONTEXTS[0], 3, seed=2)
    monkeypatch.setattr("fastbandit.runtime.freezing.COMPILED_ABOVE", 0)
    compiled = trained(posterior="dropout").explain(CONTEXTS[0], 3, seed=2)

    assert compiled.contributions == pytest.approx(by_torch.contributions, abs=2e-5)


def test_one_context_is_explained_at_a_time() -> None:
    with pytest.raises(ShapeError):
        trained().explain(CONTEXTS, 3)


def test_none_is_the_typical_context() -> None:
    parts = trained(posterior="dropout").explain(None, 3).contributions

    assert all(abs(parts[f"context[{n}]"]) < 1e-6 for n in range(4))


def test_an_explanation_is_no_decision() -> None:
    bandit, other = trained(), trained()
    bandit.explain(CONTEXTS[0], 3, seed=1)

    assert bandit.select(CONTEXTS[:1]).seeds == other.select(CONTEXTS[:1]).seeds


def test_a_context_with_names_is_explained_by_them() -> None:
    people = {"age": [20.0, None, 60.0] * 10, "city": ["Oslo", "Rome", "Wien"] * 10}
    bandit = Bandit(context=people, ids=["news", "sport"], seed=1)
    taken = bandit.select(people)
    bandit.update(contexts=people, arms=taken.arms, rewards=[0, 1, 1] * 10)

    found = bandit.explain({"city": "Bern", "age": None}, "news")
    frozen = bandit.freeze().explain([{"city": "Bern", "age": None}], "news")

    assert {"age", "city"} <= set(found.contributions)
    assert frozen.expected == pytest.approx(found.expected, abs=1e-4)
