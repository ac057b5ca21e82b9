"""Each estimator equals its published formula, worked out by hand."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from little_log import EVERY, LOGGING, REWARDS, little_log, little_policy, model

from fastbandit.declaration import info_of, part, setting
from fastbandit.errors import SettingError
from fastbandit.evaluation import (
    DR,
    IPS,
    MIPS,
    SNIPS,
    Contributions,
    DirectMethod,
    Estimator,
    PreparedRounds,
    Replay,
    SparsePolicy,
    SwitchDR,
    evaluate,
)
from fastbandit.evaluation.estimators import Need, declared_estimators, estimators_of

# The weights are 1, 3.2, 2.5, 2; what the model expects of the policy is .47, .37, .65, .5,
# and of the logged arms .6, .4, .8, .5.
LOGGED_BY = SparsePolicy(EVERY, LOGGING, arms=3)
BY_HAND: dict[Estimator, float] = {
    Replay(): (0.5 * 1.0 + 0.5 * 1.0 + 1.0 * 0.5) / (0.5 + 0.8 + 0.5 + 1.0),
    IPS(): (1.0 + 0.0 + 2.5 + 1.0) / 4,
    SNIPS(): 4.5 / 8.7,
    DirectMethod(): (0.47 + 0.37 + 0.65 + 0.5) / 4,
    DR(): (0.87 - 0.91 + 1.15 + 0.5) / 4,
    SwitchDR(threshold=2.5): (0.87 + 0.37 + 1.15 + 0.5) / 4,
    MIPS(clusters=(0, 0, 1), logging=LOGGED_BY): (
        0.8 / 0.75 * 1.0 + 0.0 + 0.5 / 0.2 * 1.0 + 1.0 / 0.8 * 0.5
    )
    / 4,
}


@part("estimator", name="half-way")
class HalfWay:
    """A share of the direct method and of IPS: an estimator from outside the package."""

    title: ClassVar[str] = "Half way"
    needs: ClassVar[tuple[Need, ...]] = ("weights", "reward model")
    share: float = setting(default=0.5, least=0)

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        weighted = rounds.weights * rounds.rewards
        tops = self.share * rounds.expected.of_policy + (1.0 - self.share) * weighted
        return Contributions(tops, notes=("half of it rests on the model",))


@pytest.mark.parametrize("estimator", BY_HAND, ids=lambda one: type(one).__name__)
def test_an_estimate_is_the_one_worked_out_by_hand(estimator: Estimator) -> None:
    found = evaluate(little_log(), little_policy(), estimators=estimator, model=model)

    (estimate,) = found.estimates
    assert estimate.value == pytest.approx(BY_HAND[estimator], abs=1e-9)


def test_an_estimator_from_outside_is_evaluated_beside_the_others() -> None:
    found = evaluate(little_log(), little_policy(), estimators=["ips", HalfWay()], model=model)

    both = (BY_HAND[DirectMethod()] + BY_HAND[IPS()]) / 2
    assert found["half-way"].value == pytest.approx(both, abs=1e-9)
    assert found["half-way"].title in str(found)
    assert "half of it rests on the model" in found.sentences


def test_a_name_is_the_estimator_that_was_declared_with_it() -> None:
    for name, kind in declared_estimators().items():
        info = info_of(kind)
        assert info is not None
        assert info.name == name
        assert estimators_of(name) == (kind(),)


def test_an_estimator_that_is_asked_for_twice_counts_once() -> None:
    assert estimators_of(["ips", IPS(), "dr"]) == (IPS(), DR())


def test_two_estimators_of_one_name_are_rejected() -> None:
    with pytest.raises(SettingError, match=r"a name each: got SwitchDR\(threshold=5.0, .*Evaluate"):
        estimators_of([SwitchDR(), SwitchDR(threshold=5.0)])


def test_what_is_not_declared_is_no_estimator() -> None:
    with pytest.raises(
        SettingError, match=r"declared with part.*: got <object .* Use one of replay"
    ):
        evaluate(little_log(), little_policy(), estimators=object())  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("nan"), "10"])
def test_a_threshold_that_is_no_positive_number_is_rejected(threshold: Any) -> None:
    with pytest.raises(SettingError, match=r"SwitchDR needs threshold to be .* above 0: got"):
        SwitchDR(threshold=threshold)


def test_clipped_weights_are_cut() -> None:
    found = evaluate(little_log(), little_policy(), estimators=[IPS(clip=2.0), SNIPS(clip=2.0)])

    assert found["ips"].value == pytest.approx((1.0 + 0.0 + 2.0 + 1.0) / 4, abs=1e-9)
    assert found["snips"].value == pytest.approx(4.0 / 7.0, abs=1e-9)


def test_what_clipping_biases_is_said() -> None:
    found = evaluate(little_log(), little_policy(), estimators=IPS(clip=2.0))

    # (3.2 - 2) and (2.5 - 2), over four rounds, with rewards from 0 to 1
    assert found.diagnostics.cut_weight == pytest.approx(1.7 / 4, abs=1e-9)
    assert any("2 of 4 rounds" in said and "0 to 0.425" in said for said in found.sentences)


def test_replay_of_a_certain_policy_is_the_mean_of_the_matches() -> None:
    found = evaluate(little_log(), SparsePolicy.fixed(little_log(), 0), estimators="replay")

    assert found["replay"].value == pytest.approx(0.75, abs=1e-9)


def test_an_estimate_without_a_match_is_unknown() -> None:
    found = evaluate(
        little_log(chosen=[0, 0, 0, 0]), SparsePolicy.fixed(little_log(), 2), estimators=["snips"]
    )

    assert np.isnan(found["snips"].value)
    assert np.isnan(found["snips"].low)
    assert found.diagnostics.effective_size == 0.0


def test_the_logging_policy_is_worth_what_the_log_earned() -> None:
    found = evaluate(little_log(), LOGGED_BY, estimators="ips")

    assert found["ips"].value == pytest.approx(np.mean(REWARDS), abs=1e-12)


def test_the_influence_of_rounds_has_the_estimate_as_its_mean() -> None:
    terms = Contributions(np.array([1.0, 0.0, 3.0]), np.array([1.0, 2.0, 2.0]))

    assert terms.influence.mean() == pytest.approx(terms.value)


def test_diagnostics_are_of_whole_weights_where_estimators_clip_differently() -> None:
    found = evaluate(little_log(), little_policy(), estimators=[IPS(clip=2.0), SNIPS()])

    assert found.diagnostics.cut_rounds == 0
    assert any("weights above 2 were clipped in 2 of 4 rounds" in said for said in found.sentences)
