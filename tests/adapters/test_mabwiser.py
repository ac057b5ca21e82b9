"""The same calls give answers of the same shape as MABWiser's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes import vectors_of

from fastbandit.adapters.mabwiser import MabwiserBandit
from fastbandit.errors import InputError, SettingError, UnknownArmError

pytestmark = pytest.mark.usefixtures("little_training")
CONTEXTS = vectors_of(30, 3)
DECISIONS = ["a", "b", "c"] * 10
REWARDS = [1, 0, 0] * 10


def calls(mab: Any) -> list[Any]:
    """Make the calls of a small program, and tell the shape of each answer."""
    mab.fit(DECISIONS, REWARDS, CONTEXTS)
    mab.partial_fit(np.array(DECISIONS), np.array(REWARDS), CONTEXTS.tolist())
    one, some = mab.predict(CONTEXTS[:1].tolist()), mab.predict(CONTEXTS[:4])
    expected = mab.predict_expectations(CONTEXTS[:1])
    many = mab.predict_expectations(CONTEXTS[:4])
    mab.add_arm("d")
    grown = sorted(mab.predict_expectations(CONTEXTS[:1]))
    mab.remove_arm("b")
    shrunk = sorted(mab.predict_expectations(CONTEXTS[:1]))
    return [
        type(one),
        (type(some), len(some)),
        sorted(expected),
        (len(many), list(map(sorted, many))),
        grown,
        shrunk,
        list(mab.arms),
    ]


@pytest.mark.slow
def test_calls_answer_in_the_shapes_of_mabwiser() -> None:
    library = pytest.importorskip("mabwiser.mab", reason="mabwiser is not installed")
    theirs = library.MAB(["a", "b", "c"], library.LearningPolicy.LinTS(alpha=0.5), seed=1)

    assert calls(MabwiserBandit(["a", "b", "c"])) == calls(theirs)


def test_a_program_without_contexts_runs() -> None:
    mab = MabwiserBandit(["a", "b", "c"], seed=2)

    mab.fit(DECISIONS, REWARDS)

    assert mab.predict() in mab.arms
    assert list(mab.predict_expectations()) == mab.arms


def test_fit_forgets_and_partial_fit_does_not() -> None:
    mab = MabwiserBandit(["a", "b", "c"])

    mab.fit(DECISIONS, REWARDS, CONTEXTS)
    mab.partial_fit(DECISIONS, REWARDS, CONTEXTS)
    assert mab.bandit is not None
    assert mab.bandit.version == 2
    mab.fit(DECISIONS, REWARDS, CONTEXTS)
    assert mab.bandit.version == 1


def test_a_fit_that_fails_leaves_what_was_learned() -> None:
    mab = MabwiserBandit(["a", "b", "c"])
    mab.fit(DECISIONS, REWARDS, CONTEXTS)

    with pytest.raises(UnknownArmError):
        mab.fit(["z"], [1], CONTEXTS[:1])

    assert mab.predict(CONTEXTS[:1]) in mab.arms


def test_arms_may_have_features() -> None:
    features = {"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [1.0, 1.0]}
    mab = MabwiserBandit(list(features), arm_to_features=features)
    mab.fit(DECISIONS, REWARDS, CONTEXTS)

    mab.add_arm("d", features=[0.5, 0.5])

    assert set(mab.predict_expectations(CONTEXTS[0])) == {*"abcd"}
    with pytest.raises(InputError, match="none for 'e'"):
        mab.add_arm("e")


def test_contexts_in_a_frame_go_by_name() -> None:
    frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 30, "age": [3.0, None, 4.0] * 20})
    mab = MabwiserBandit(["a", "b"], search="exhaustive")
    mab.fit(["a", "b"] * 30, [1, 0] * 30, frame)

    mab.partial_fit(["a", "b"], [1, 0], frame[["age", "city"]][:2])

    assert mab.predict({"age": None, "city": "Oslo"}) in {"a", "b"}
    turned = mab.predict_expectations(frame[["age", "city"]][:2])
    assert turned == mab.predict_expectations(frame[:2])


def test_a_single_arm_is_the_best() -> None:
    mab = MabwiserBandit(["a"])
    mab.fit(["a", "a"], [0, 1], CONTEXTS[:2])

    assert mab.predict(CONTEXTS[:1]) == "a"
    assert list(mab.predict_expectations(CONTEXTS[:1])) == ["a"]


def test_mistakes_are_named() -> None:
    mab = MabwiserBandit(["a", "b"])

    with pytest.raises(SettingError, match=r"Call fit\(\)"):
        mab.predict(CONTEXTS)
    with pytest.raises(InputError, match="'a', which is there"):
        mab.add_arm("a")
    with pytest.raises(InputError, match="have no features"):
        mab.add_arm("c", features=[1.0])
    with pytest.raises(UnknownArmError, match="'z'"):
        mab.remove_arm("z")


def test_expectations_of_too_many_arms_are_rejected() -> None:
    mab = MabwiserBandit(["a", "b", "c"])
    mab.fit(DECISIONS, REWARDS, CONTEXTS)

    with pytest.raises(SettingError, match="use predict"):
        mab.predict_expectations(np.zeros((4_000_000, 3), np.float32))
