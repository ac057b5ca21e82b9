"""What contexts and arms have in common is known before anything is learned."""

from __future__ import annotations

import numpy as np

from fastbandit.features.columns import Number
from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Text
from fastbandit.reward.matches import Matches, matched_directions, matches_of, text_spans

SPACE = "a space"


def kind_of(*columns: object) -> Dense:
    return Dense.of(Schema(tuple(columns)))


def found(size: int = 16) -> Matches:
    contexts = kind_of(Number("paid"), Text("viewed", dim=3, space=SPACE))
    arms = kind_of(*(Text(name, dim=3, space=SPACE) for name in ("title", "about")))
    both = matches_of(contexts, arms, size)
    assert both is not None
    return both


def test_directions_of_all_texts_of_a_space_match() -> None:
    assert found().contexts == ((3,), (4,), (5,))  # paid 0-1, viewed 2-5
    assert found().arms == ((1, 5), (2, 6), (3, 7))  # title 0-3, about 4-7


def test_some_coordinates_are_left_to_what_does_not_match() -> None:
    assert len(found(size=2).contexts) == 1
    assert len(found(size=4).contexts) == 3


def test_texts_of_different_spaces_do_not_match() -> None:
    one, other = (kind_of(Text("title", dim=2, space=space)) for space in (SPACE, "another"))

    assert matches_of(one, other, 16) is None
    assert matches_of(kind_of(Text("title", dim=2)), kind_of(Text("title", dim=2)), 16) is None
    assert matches_of(Dense(3), one, 16) is None


def test_directions_of_texts_keep_how_much_they_differ() -> None:
    scales = np.array([1.0, 1.0, 1.0, 0.3, 0.1, 0.1])
    numbers = np.random.default_rng(0).normal(size=(50, 6))
    rows = matched_directions(found().contexts, numbers, scales, 5)

    assert rows.shape == (5, 6)
    assert np.isclose(rows[0, 3] / rows[1, 4], 3.0)
    assert np.isclose(np.square(rows[:3]).sum(), 3.0)
    np.testing.assert_allclose(rows[3:, [3, 4, 5]], 0.0, atol=1e-12)


def test_weights_of_matches_are_alike_before_anything_is_seen() -> None:
    covariance = np.linalg.inv(found().prior_precision(5))

    assert np.isclose(covariance[0, 1] / covariance[0, 0], 0.8)
    assert covariance[4, 4] < 1e-5


def test_only_texts_in_a_space_have_spans() -> None:
    kind = kind_of(Number("paid"), Text("viewed", dim=3, space=SPACE), Text("hashed", dim=3))

    assert text_spans(kind) == (slice(3, 6),)
    assert text_spans(Dense(4)) == ()
