"""A frozen bandit chooses among arms that come with a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, FrozenBandit, Schema
from fastbandit.arms.offers import offer_name
from fastbandit.errors import DuplicateArmError, InputError, ShapeError, UnknownArmError
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.runtime import offered_arms
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


def test_an_arm_that_was_never_learned_from_is_not_called_by_its_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bandit, name = learned(), offer_name("new", NEW[0].tolist())
    bandit.upsert_arms(NEW[:1], ids=[name])
    bandit.discard_arms([name, 5])
    frozen, named = bandit.freeze(), list[str | int]()
    monkeypatch.setattr(offered_arms, "offer_name", lambda id, _: named.append(id) or name)

    frozen.offering([Offer("new", NEW[0]), Offer("other", NEW[1]), Offer(5, NEW[2])])

    assert named == ["new"]
    assert frozen.parts[1].learned_ids == {"new"}


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
        ([Offer("\x1f\x1f", NEW[0])], InputError, "may not be called"),
    ],
)
def test_mistakes_are_named(offers: list[Offer], error: type[Exception], said: str) -> None:
    frozen = Bandit(arms=VECTORS, context=2).freeze()

    with pytest.raises(error, match=said):
        frozen.offering(offers)


def named_bandit() -> FrozenBandit:
    arms = Schema.open(slots=8, hashed=4).table([{"price": 1.0}, {"price": 2.0}])
    return Bandit(context=1, arms=arms, ids=["a", "b"], search="exhaustive").freeze()


def test_an_arm_that_came_of_late_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = named_bandit()
    offers = [Offer("x", {"price": 3.0}, b"x3"), Offer("y", {"price": 4.0}, b"y4")]
    first = bandit.offering(offers)
    monkeypatch.setattr(Schema, "encode", None)

    again = bandit.offering(offers[::-1])

    assert set(bandit.parts[2].offers) == {one.key for one in offers}
    points = [few.parts[1].points_of(few.parts[1].ids.rows(["x", "y"])) for few in (first, again)]
    assert np.array_equal(*points)


def test_arms_that_came_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered_arms, "_REMEMBERED", 4)
    bandit = named_bandit()

    for n in range(20):
        bandit.offering([Offer(f"x{n}", {"price": float(n)}, b"%d" % n)])

    assert len(bandit.parts[2].offers) <= 4


def test_an_arm_with_weights_of_its_own_is_its_id_whatever_its_features(tmp_path: Path) -> None:
    own = ArmEffectsPosterior(own_weights=True)
    learned(posterior=own, embed_ids=True).freeze().save(tmp_path / "frozen")
    bandit = FrozenBandit.load(tmp_path / "frozen")

    plain = bandit.offering([Offer(id) for id in (3, 8)])
    featured = bandit.offering([Offer(3, NEW[0]), Offer(8, NEW[1])])
    with_new = bandit.offering([Offer(3, NEW[0]), Offer("new", NEW[2])])

    answers = [one.select(CONTEXTS, explore=False, k=2) for one in (plain, featured)]
    assert answers[0].arms == answers[1].arms
    np.testing.assert_array_equal(answers[0].scores, answers[1].scores)
    assert {arm for arms in with_new.select(CONTEXTS, k=2).arms for arm in arms} == {3, "new"}
