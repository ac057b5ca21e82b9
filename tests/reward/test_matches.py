"""What contexts and arms have in common by name is known before anything is learned."""

from __future__ import annotations

import numpy as np

from fastbandit.features.columns import Number
from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Category, Text
from fastbandit.reward.matches import REST, Matches, matches_of

SPACE = "a space"


def kind_of(*columns: object) -> Dense:
    return Dense.of(Schema(tuple(columns)))


def found() -> Matches:
    contexts = kind_of(
        Number("paid"), Text("viewed", dim=2, space=SPACE), Category("likes", ("a", "b"))
    )
    arms = kind_of(Category("kind", ("b", "c")), Text("title", dim=2, space=SPACE), Number("cost"))
    both = matches_of(contexts, arms)
    assert both is not None
    return both


def test_directions_of_texts_match_and_so_do_levels_of_one_name() -> None:
    assert found().context.matches == ((3,), (4,), (8,))  # paid 0-1, viewed 2-4, likes 5-8
    assert found().arm.matches == ((5,), (6,), (2,))  # kind 0-3, title 4-6, cost 7-8
    assert found().texts == 2
    assert (found().context.numbers, found().arm.numbers) == ((1,), (8,))
    assert found().pairs == (1, 1)


def test_texts_of_different_spaces_do_not_match() -> None:
    one, other = (kind_of(Text("title", dim=2, space=space)) for space in (SPACE, "another"))

    assert matches_of(one, other) is None
    assert matches_of(kind_of(Text("title", dim=2)), kind_of(Text("title", dim=2))) is None
    assert matches_of(Dense(3), one) is None


def test_directions_of_texts_keep_how_much_they_differ() -> None:
    scales = np.ones(9)
    scales[[3, 4]] = 0.3, 0.1
    rows = found().context.rows(scales, found().texts)

    assert np.isclose(rows[0, 3] / rows[1, 4], 3.0)
    assert np.isclose(np.square(rows[:2]).sum(), 2.0)
    assert rows[2, 8] == 1.0


def test_weights_of_matches_of_a_kind_are_alike_before_anything_is_seen() -> None:
    covariance = np.linalg.inv(found().prior_precision(100.0))

    assert len(covariance) == 3 + REST
    assert np.isclose(covariance[0, 1] / covariance[0, 0], 0.8)
    assert np.isclose(covariance[0, 2], 0.0)
    assert np.isclose(covariance[3, 3], 0.01)
    assert covariance[4, 4] < 1e-5
