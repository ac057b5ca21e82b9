"""Linear policies see a few numbers of any context, and arms as they can take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.types import Inputs
from lab.experiments import linear_view
from lab.experiments.environment import Tabled
from lab.experiments.linear_view import (
    CONTEXT_COLUMNS,
    ID_COLUMNS,
    LinearView,
    Projected,
    linear_arms,
)

NARROW, WIDE, IMAGES = vectors_of(9, 5), vectors_of(9, 300), vectors_of(9, 90).reshape(9, 9, 10)
NUMBERS = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3])
CASES: dict[str, tuple[Any, Any, int]] = {
    "narrow": (Dense(5), NARROW, 5),
    "wide": (Dense(300), WIDE, CONTEXT_COLUMNS),
    "narrow and sparse": (Sparse(5), csr_matrix(NARROW), 5),
    "wide and sparse": (Sparse(300), csr_matrix(WIDE), CONTEXT_COLUMNS),
    "image": (Image(9, 10), IMAGES, CONTEXT_COLUMNS),
    "ids": (Ids(5), NUMBERS, ID_COLUMNS),
    "narrow and ids": (FeaturesAndIds(Dense(5), Ids(5)), (NARROW, NUMBERS), 5 + ID_COLUMNS),
    "wide and ids": (
        FeaturesAndIds(Sparse(300), Ids(5)),
        (csr_matrix(WIDE), NUMBERS),
        CONTEXT_COLUMNS + ID_COLUMNS,
    ),
}
"""Kinds of contexts, some of each, and how many numbers a linear policy sees."""


def shown(case: str) -> np.ndarray:
    kind, raw, _ = CASES[case]
    return LinearView.of(kind).show(raw)


@pytest.mark.parametrize("case", CASES)
def test_any_context_becomes_a_few_finite_numbers(case: str) -> None:
    kind, _, columns = CASES[case]

    assert LinearView.of(kind).columns == columns
    assert shown(case).shape == (9, columns)
    assert shown(case).dtype == np.float32
    assert np.isfinite(shown(case)).all()


@pytest.mark.parametrize("case", CASES)
def test_a_view_is_the_same_every_time(case: str) -> None:
    assert np.array_equal(shown(case), shown(case))


def test_words_have_length_one() -> None:
    lengths = np.linalg.norm(NARROW, axis=1, keepdims=True)

    np.testing.assert_allclose(shown("narrow and sparse"), NARROW / lengths, rtol=1e-5)


def test_numbers_of_any_size_have_length_about_one() -> None:
    sizes, middles = np.array([1e-3, 1, 1e4, 50, 0.2]), np.array([0, -3, 1e5, 7, 1])
    view = LinearView.of(Dense(5))

    vectors = view.show(NARROW * sizes + middles)

    assert np.linalg.norm(vectors, axis=1).mean() == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(vectors, shown("narrow"), atol=1e-3)


def test_flags_are_centred_beside_a_constant_alone() -> None:
    flags = np.array([[1.0], [0.0], [0.0], [0.0]])

    centred = LinearView.of(Dense(1)).show(flags)[:, 0]
    plain = LinearView.of(Dense(1), is_centred=False).show(flags)[:, 0]

    assert centred.mean() == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(plain, 4 * flags[:, 0], rtol=1e-5)


def test_contexts_of_unit_length_are_shown_as_they_are() -> None:
    sphere = vectors_of(4000, 4)
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)

    vectors = LinearView.of(Dense(4), is_centred=False).show(sphere)

    np.testing.assert_allclose(vectors, sphere, atol=0.05)


def test_scales_are_those_of_contexts_that_were_learned_from() -> None:
    view = LinearView.of(Dense(5))
    view.see(NARROW)

    far = view.show(np.full((1, 5), 1e30))
    few = view.show(NARROW[:2])

    assert np.abs(far).max() < 5.0
    np.testing.assert_allclose(few, shown("narrow")[:2], rtol=1e-6)


def test_scales_are_renewed_when_a_quarter_more_contexts_came() -> None:
    view = LinearView.of(Dense(1))
    view.see(np.arange(8.0).reshape(8, 1))
    first = view.scales

    view.see(np.array([[70.0]]))
    assert view.scales is first
    view.see(np.array([[70.0]]))
    assert view.scales is not first


def test_projections_keep_the_distances_of_contexts_apart() -> None:
    words = WIDE / np.linalg.norm(WIDE, axis=1, keepdims=True)
    ratios = pdist(shown("wide and sparse")) / pdist(words)

    assert ratios.min() > 0.7
    assert ratios.max() < 1.3


def test_an_id_has_a_vector_of_its_own_wherever_it_comes() -> None:
    vectors = shown("ids")

    assert np.array_equal(vectors[:4], vectors[5:])
    assert len(np.unique(vectors, axis=0)) == 5


def test_features_come_first_and_ids_after_them() -> None:
    both = shown("narrow and ids")

    assert np.array_equal(both[:, :5], shown("narrow"))
    assert np.array_equal(both[:4, 5:], both[5:, 5:])


def test_contexts_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(SettingError, match=r"known kind: got 'words'\. Use Dense, Sparse"):
        LinearView.of("words")  # type: ignore[arg-type]


@dataclass
class Listener:
    """An agent that remembers what it was shown."""

    heard: list[Any] = field(default_factory=list)

    def select(self, contexts: Any, /) -> Any:
        self.heard.append(contexts)
        return "a decision"

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.heard.append((contexts, arms, rewards))


def test_an_agent_sees_contexts_through_its_view_and_all_else_as_it_is() -> None:
    listener = Listener()
    agent = Projected(listener, LinearView.of(Image(9, 10)))

    decision: Any = agent.select(IMAGES)
    agent.update(contexts=IMAGES, arms=["a"], rewards=[1.0])

    assert decision == "a decision"
    first, (contexts, arms, rewards) = listener.heard
    assert np.array_equal(first, shown("image"))
    assert np.array_equal(contexts, shown("image"))
    assert (arms, rewards) == (["a"], [1.0])


def environment(arms: int, features: Any = None) -> Tabled:
    table = np.zeros((1, arms), np.float32)
    return Tabled("little", Dense(1), Inputs(dense=np.ones((1, 1), np.float32)), table, features)


def test_arms_with_features_are_taken_as_they_are() -> None:
    features = vectors_of(3, 2)

    arms, is_disjoint = linear_arms(environment(3, features))

    assert arms is features
    assert not is_disjoint


def test_a_few_arms_without_features_get_a_model_each() -> None:
    assert linear_arms(environment(3)) == (None, True)


def test_many_arms_without_features_get_a_random_vector_each() -> None:
    count = linear_view._FEW_ARMS + 1

    arms, is_disjoint = linear_arms(environment(count))

    assert arms.shape == (count, ID_COLUMNS)
    assert len(np.unique(arms, axis=0)) == count
    assert not is_disjoint
    assert np.array_equal(arms, linear_arms(environment(count))[0])
