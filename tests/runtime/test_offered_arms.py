"""A frozen bandit chooses among arms that come with a request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, FrozenBandit
from fastbandit.arms.offers import offer_name
from fastbandit.errors import DuplicateArmError, InputError, ShapeError, UnknownArmError
from fastbandit.runtime.offered_arms import Offer

ARMS, DIM = 40, 3
VECTORS = vectors_of(ARMS, DIM, seed=2)
NEW = vectors_of(6, DIM, seed=9)
CONTEXTS = vectors_of(5, 2, seed=4)
SEEDS = np.arange(5, dtype=np.uint64)
POSTERIORS: list[dict[str, Any]] = [
    {},
    {"posterior": "last-layer"},
    {"posterior": "arm-effects"},
    {"posterior": "arm-effects", "exploration": "ucb"},
    {"exploration": "ucb"},
    {"embed_ids": True},
]


def learned(**parts: Any) -> Bandit:
    bandit = Bandit(arms=VECTORS, context=2, seed=1, progress=False, **parts)
    rng = np.random.default_rng(3)
    contexts, rows = vectors_of(60, 2, seed=5), rng.integers(0, ARMS, 60)
    rewards = (contexts[:, 0] * VECTORS[rows, 0] > 0).astype(float)
    bandit.update(contexts=contexts, arms=rows, rewards=rewards)
    return bandit


@pytest.fixture(scope="module", params=POSTERIORS, ids=str)
def frozen(request: pytest.FixtureRequest) -> FrozenBandit:
    return learned(**request.param).freeze()


def test_arms_of_the_catalogue_are_chosen_as_from_a_list_of_eligible_ones(
    frozen: FrozenBandit,
) -> None:
    few = [3, 8, 21]

    answer = frozen.offering([Offer(id) for id in few]).select(CONTEXTS, explore=False, k=3)

    wanted = frozen.select(CONTEXTS, eligible=few, explore=False, k=3)
    assert answer.arms == wanted.arms
    np.testing.assert_allclose(answer.scores, wanted.scores, rtol=1e-5, atol=1e-6)


def test_new_arms_are_scored_as_if_they_had_been_added(frozen: FrozenBandit) -> None:
    offers = [Offer(f"new {n}", features) for n, features in enumerate(NEW)]

    answer = frozen.offering([*offers, Offer(8)]).select(CONTEXTS, explore=False, k=7)

    other = frozen.offering([Offer(id) for id in range(ARMS)])  # a catalogue of its own
    other.add_arms(NEW, ids=[one.id for one in offers])
    eligible = [*(one.id for one in offers), 8]
    wanted = other.select(CONTEXTS, eligible=eligible, explore=False, k=7)
    assert answer.arms == wanted.arms
    np.testing.assert_allclose(answer.scores, wanted.scores, rtol=1e-5, atol=1e-6)


def test_the_catalogue_stays_as_it_was(frozen: FrozenBandit) -> None:
    before = frozen.select(CONTEXTS, seeds=SEEDS).arms

    frozen.offering([Offer("new", NEW[0])]).select(CONTEXTS)

    assert len(frozen) == ARMS
    assert "new" not in frozen
    assert frozen.select(CONTEXTS, seeds=SEEDS).arms == before


def test_draws_of_one_seed_choose_the_same_again(frozen: FrozenBandit) -> None:
    offers = [Offer(3), Offer("new", NEW[1]), Offer(9)]

    one, again = (frozen.offering(offers).select(CONTEXTS, seeds=SEEDS) for _ in range(2))

    assert one.arms == again.arms
    assert set(one.arms) <= {3, "new", 9}
    single = frozen.offering(offers).select_one(CONTEXTS[0], seed=int(SEEDS[0]))
    assert single.arm == one.arms[0]


def test_propensities_of_offered_arms_sum_to_one(frozen: FrozenBandit) -> None:
    few = frozen.offering([Offer(3), Offer("new", NEW[1])])

    found = few.propensities(CONTEXTS[0], draws=200, epsilon=0.1)

    assert found.of(3) + found.of("new") == pytest.approx(1.0)


def test_an_offered_arm_is_explained(frozen: FrozenBandit) -> None:
    few = frozen.offering([Offer(3), Offer("new", NEW[1])])

    found = few.explain(CONTEXTS[0], "new")

    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)


def test_what_was_learned_of_an_arm_that_was_offered_before_is_known() -> None:
    bandit, name = learned(posterior="arm-effects"), offer_name("new", NEW[0].tolist())
    bandit.upsert_arms(NEW[:1], ids=[name])
    contexts = vectors_of(40, 2, seed=6)
    bandit.update(contexts=contexts, arms=[name] * 40, rewards=np.ones(40))
    bandit.discard_arms([name])

    few = bandit.freeze().offering([Offer("new", NEW[0].tolist()), Offer("other", NEW[0].tolist())])

    assert few.select(CONTEXTS, explore=False).arms == ["new"] * len(CONTEXTS)


def test_features_of_an_arm_in_the_catalogue_go_before_its_own() -> None:
    frozen = learned().freeze()

    plain = frozen.offering([Offer(3)]).select_one(CONTEXTS[0], explore=False)
    other = frozen.offering([Offer(3, VECTORS[7])]).select_one(CONTEXTS[0], explore=False)
    same = frozen.offering([Offer(3, VECTORS[3])]).select_one(CONTEXTS[0], explore=False)

    wanted = frozen.offering([Offer("new", VECTORS[7])]).select_one(CONTEXTS[0], explore=False)
    assert other.score == pytest.approx(wanted.score, abs=1e-6)
    assert same.score == pytest.approx(plain.score, abs=1e-6)


def test_ids_alone_may_be_new() -> None:
    bandit = Bandit(ids=["a", "b", "c"], context=2, seed=1, progress=False)
    contexts = vectors_of(30, 2, seed=5)
    bandit.update(contexts=contexts, arms=["a", "b", "c"] * 10, rewards=[1, 0, 0] * 10)
    frozen = bandit.freeze()

    chosen = frozen.offering([Offer("a"), Offer("never seen")]).select(CONTEXTS, explore=False)

    assert set(chosen.arms) <= {"a", "never seen"}


def test_popularity_decides_among_offered_arms_before_the_first_version() -> None:
    frozen = Bandit(arms=VECTORS, context=2).freeze()
    frozen.apply_delta(np.array([-1, 3]), np.array([0.1, 0.9]), np.array([0.01, 0.01]))

    few = frozen.offering([Offer("new", NEW[0]), Offer(3), Offer(4)])

    assert few.select(CONTEXTS, seeds=SEEDS).arms == [3] * 5


@pytest.mark.parametrize(
    ("offers", "error", "said"),
    [
        ([], InputError, "1 to 1,024"),
        ([Offer("new")], UnknownArmError, "'new'"),
        ([Offer("new", [1.0])], ShapeError, "3"),
        ([Offer(3), Offer(3)], DuplicateArmError, "3"),
    ],
)
def test_mistakes_are_named(offers: list[Offer], error: type[Exception], said: str) -> None:
    frozen = Bandit(arms=VECTORS, context=2).freeze()

    with pytest.raises(error, match=said):
        frozen.offering(offers)
