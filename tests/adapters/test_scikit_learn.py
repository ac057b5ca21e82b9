"""An estimator that passes the checks of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes import LITTLE, vectors_of

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastbandit.adapters.scikit_learn import BanditClassifier
from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.training.fit_reward import RewardFit

CONTEXTS = vectors_of(60, 2)
LABELS = np.where(CONTEXTS[:, 0] > 0, "right", "left")


@pytest.fixture(autouse=True)
def short_training(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train just long enough to tell a few clouds apart where that is asked for."""
    is_judged = "check_" not in request.node.name or "classifiers_train" in request.node.name
    iterations = 200 if is_judged else 20
    training = replace(LITTLE, reward=RewardFit(iterations=iterations, batch=64))
    monkeypatch.setattr("fastbandit.settings.presets._training", lambda *_, **__: training)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([BanditClassifier()])  # type: ignore[untyped-decorator]
def test_a_check_of_scikit_learn_passes(
    estimator: BanditClassifier, check: Callable[[Any], None]
) -> None:
    check(estimator)


def test_labels_are_learned() -> None:
    assert BanditClassifier().fit(CONTEXTS, LABELS).score(CONTEXTS, LABELS) > 0.9


def test_rewards_tell_which_arm_is_right() -> None:
    tried = np.array(["left", "right"] * 30)
    estimator = BanditClassifier().fit(CONTEXTS, tried, (tried == LABELS).astype(float))

    assert estimator.score(CONTEXTS, LABELS) > 0.9
    assert estimator.bandit_.version == 1


FRAME = pd.DataFrame({"city": np.where(CONTEXTS[:, 0] > 0, "Oslo", "Rome"), "age": [None, 3] * 30})


def test_a_frame_is_read_by_name_in_any_order() -> None:
    estimator = BanditClassifier().fit(FRAME, LABELS)

    assert estimator.score(FRAME[["age", "city"]], LABELS) == 1.0
    assert estimator.bandit_.select(FRAME[["age", "city"]]).rows.shape == (60, 1)
    assert estimator.schema_.names == ("city", "age")


def test_a_frame_goes_through_folds() -> None:
    assert cross_val_score(BanditClassifier(), FRAME, LABELS, cv=2).min() > 0.9


def test_an_estimator_that_was_fitted_by_name_needs_names() -> None:
    estimator = BanditClassifier().fit(FRAME, LABELS)

    with pytest.raises(InputError, match="needs city, age: got a ndarray"):
        estimator.predict(CONTEXTS)
    with pytest.raises(InputError, match="need the column 'age'"):
        estimator.predict(FRAME[["city"]])


def test_a_partial_fit_goes_on() -> None:
    estimator = BanditClassifier().partial_fit(
        CONTEXTS[:5], ["left"] * 5, [1.0] * 5, classes=["left", "right"]
    )

    estimator.partial_fit(CONTEXTS, LABELS)

    assert estimator.bandit_.version == 2
    assert estimator.classes_.tolist() == ["left", "right"]


def test_a_clone_has_the_settings_and_nothing_learned() -> None:
    estimator = BanditClassifier(random_state=3).fit(CONTEXTS, LABELS)

    copied = clone(estimator).set_params(exploration="greedy")

    assert not hasattr(copied, "bandit_")
    assert copied.get_params() == {**estimator.get_params(), "exploration": "greedy"}


def test_it_takes_part_in_pipelines_and_searches() -> None:
    pipeline = make_pipeline(StandardScaler(), BanditClassifier())
    search = GridSearchCV(pipeline, {"banditclassifier__random_state": [0, 1]}, cv=2)

    assert search.fit(CONTEXTS, LABELS).best_score_ > 0.7
    assert len(cross_val_score(pipeline, CONTEXTS, LABELS, cv=2)) == 2


def test_an_unknown_arm_is_named() -> None:
    estimator = BanditClassifier().fit(CONTEXTS, LABELS)

    with pytest.raises(SettingError, match="'up'"):
        estimator.partial_fit(CONTEXTS[:1], ["up"], [1.0])


def test_each_row_needs_a_reward() -> None:
    with pytest.raises(ShapeError, match="60 rows and 1 rewards"):
        BanditClassifier().fit(CONTEXTS, LABELS, [1.0])
