"""Explanations: contributions sum to the score, names are safe, and what would change is true."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.arms.arrays import Mask
from fastbandit.errors import SettingError
from fastbandit.runtime.explanation import (
    BASE,
    Asked,
    Explanation,
    Floats,
    check_learned,
    explain,
    unique_names,
)

ASKED = Asked("a", None, 1)
NUMBERS = st.lists(st.floats(-5, 5), min_size=1, max_size=8)


class Product:
    """Scores that are a sum of features, and the product of all that are there."""

    def __init__(self, values: Sequence[float], *, context_features: int | None = None) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.names = [f"f{n}" for n in range(len(values))]
        self.context_features = len(values) if context_features is None else context_features

    def __call__(self, present: Mask, *, seed: int | None) -> Floats:
        factors = np.where(present, 1 + self.values, 1.0)
        drawn = 0.0 if seed is None else 0.25
        return np.asarray(present @ self.values + factors.prod(axis=1) + drawn)

    def interval(self) -> tuple[float, float]:
        return 0.0, 1.0


@given(values=NUMBERS, features=st.integers(0, 8))
def test_contributions_sum_to_the_score(values: list[float], features: int) -> None:
    found = explain(ASKED, Product(values, context_features=min(features, len(values))))

    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)


def test_a_sum_of_features_gives_each_its_own() -> None:
    class Plain(Product):
        def __call__(self, present: Mask, *, seed: int | None) -> Floats:
            return np.asarray(0.5 + present @ self.values)

    found = explain(ASKED, Plain([1.0, -2.0]))

    assert found.contributions == pytest.approx({BASE: 0.5, "f0": 1.0, "f1": -2.0})


def test_the_draw_is_what_the_score_has_beyond_the_expected_reward() -> None:
    found = explain(Asked("a", 7, 1), Product([1.0]))

    assert found.draw == pytest.approx(0.25)


def test_a_feature_that_decides_between_two_arms_is_named() -> None:
    found = explain(ASKED, Product([2.0, 0.1]), runner_up="b", others=Product([0.5, 0.5]))

    (change,) = found.changes
    assert change.features == ("f0",)
    assert change.difference < 0 < found.score - (found.runner_up_score or 0.0)
    assert change.moved == pytest.approx(
        change.difference - found.score + (found.runner_up_score or 0.0)
    )


def test_features_that_decide_only_together_are_named_together() -> None:
    class Plain(Product):
        def __call__(self, present: Mask, *, seed: int | None) -> Floats:
            return np.asarray(present @ self.values)

    mine, others = Plain([1.0, 1.0, 0.0, 0.0]), Plain([0.0, 0.0, 0.0, 1.5])
    others.names.append("own")
    others.values = np.array([0.0, 0.0, 0.0, 0.0, 1.0])

    (change,) = explain(ASKED, mine, others=others).changes

    assert change.features == ("f0", "f1")


def test_names_that_stand_for_something_else_are_changed() -> None:
    names = unique_names(["age", "base", "arm itself", "age", "arm itself"], 3)

    assert names == ["age", "context: base", "context: arm itself", "arm: age", "arm itself"]


def test_html_escapes_ids_and_names() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    found = Explanation(hostile, 1.0, 1.0, None, {BASE: 0.5, hostile: 0.5}, runner_up=hostile)

    assert "<img" not in found._repr_html_()
    assert "&lt;img" in found._repr_html_()


def test_text_shows_the_largest_and_sums_the_rest() -> None:
    parts = {BASE: 1.0} | {f"f{n}": float(n) for n in range(20)}

    shown = repr(Explanation("a", 191.0, 191.0, (0.0, 1.0), parts))

    assert "f19" in shown
    assert "8 others" in shown


def test_it_is_made_of_json_values() -> None:
    found = explain(ASKED, Product([2.0, 0.1]), runner_up="b", others=Product([0.5, 0.5]))

    assert json.loads(json.dumps(found.as_dict()))["draw"] == found.draw


def test_nothing_is_explained_before_an_update() -> None:
    with pytest.raises(SettingError, match="learned something"):
        check_learned(0, what="An explanation")
