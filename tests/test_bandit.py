"""The front door: what a user sees of select, update, arms and eligibility."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from fakes import compiled, same_decision, same_weights, vectors_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastbandit import (
    Bandit,
    Box,
    Exhaustive,
    Greedy,
    Ids,
    Image,
    Sparse,
    ThompsonSampling,
)
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import EligibilityError, InputError, UnknownArmError
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training

pytestmark = pytest.mark.usefixtures("little_training")

ARMS = vectors_of(120, 3, seed=1)
CONTEXTS = vectors_of(40, 4, seed=2)
REWARDS = CONTEXTS[:, 0]
SEARCHES = ("generator", "ascent", "exhaustive")


def new(**changes: Any) -> Bandit:
    return Bandit(**{"arms": ARMS, "context": 4, "reward": "real", "seed": 3, **changes})


def teach(bandit: Bandit, contexts: Any = CONTEXTS, rewards: Any = REWARDS) -> Bandit:
    decision = bandit.select(contexts)
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return bandit


@pytest.fixture(scope="module")
def shared(little_training: None) -> Bandit:
    """A bandit after one update; tests take a twin of it."""
    return teach(new())


@pytest.fixture(scope="module", params=SEARCHES)
def by_search(little_training: None, request: pytest.FixtureRequest) -> Bandit:
    return teach(new(search=request.param))


@pytest.fixture
def trained(shared: Bandit) -> Bandit:
    return compiled(shared)


# -- before anything is learned


def test_before_any_update_a_decision_says_that_it_is_uniform() -> None:
    decision = new().select(CONTEXTS)

    assert decision.uniform
    assert decision.version == 0
    assert not decision.evaluations.any()


def test_before_any_update_every_arm_is_equally_likely() -> None:
    bandit = Bandit(arms=ARMS[:5], context=4)

    rows = bandit.select(np.zeros((5_000, 4))).rows[:, 0]

    counts = np.bincount(rows, minlength=5)
    assert ((counts - 1000) ** 2 / 1000).sum() < 18.5  # 0.1 % of chi-square, 4 degrees


def test_before_any_update_only_eligible_arms_are_drawn() -> None:
    assert set(new().select(CONTEXTS, eligible=[3, 8]).arms) == {3, 8}


def test_before_any_update_points_of_a_box_are_drawn_evenly() -> None:
    bandit = Bandit(arms=Box([0.0, 10.0], [1.0, 30.0]), context=4)

    points = np.asarray(bandit.select(np.zeros((2_000, 4))).arms)

    assert points.min(0) == pytest.approx([0, 10], abs=0.2)
    assert points.max(0) == pytest.approx([1, 30], abs=0.2)
    assert points.mean(0) == pytest.approx([0.5, 20], abs=0.5)


# -- learning


@pytest.mark.parametrize("explore", ["ts", "ucb"])
def test_a_few_updates_earn_much_more_than_random_arms(
    explore: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = Training(
        reward=RewardFit(iterations=300, batch=128),
        generator=GeneratorFit(iterations=200, batch=128, targets=512, sample=128),
    )
    monkeypatch.setattr("fastbandit.settings.presets._training", lambda *_, **__: some)
    world = Synthetic("h2", 3, 300, noise=0.3, seed=1)
    bandit = Bandit(arms=world.arms, context=3, reward="real", exploration=explore, seed=1)
    for first in range(0, 750, 250):
        contexts = world.contexts(first, 250)
        rows = bandit.select(contexts).rows[:, 0]
        rewards = world.observed(first, rows)
        bandit.update(contexts=contexts, arms=rows, rewards=rewards)

    contexts = world.contexts(750, 200)
    earned = world.means(contexts, bandit.select(contexts, explore=False).rows[:, 0]).mean()

    any_rows = np.random.default_rng(0).integers(world.size, size=len(contexts))
    best, average = world.best(contexts)[1].mean(), world.means(contexts, any_rows).mean()
    assert (earned - average) / (best - average) > 0.6


def test_scores_of_real_rewards_are_in_units_of_reward() -> None:
    bandit = teach(new(exploration="greedy"), rewards=REWARDS * 0.01 + 500)

    assert bandit.select(CONTEXTS).scores == pytest.approx(500, abs=1)


def test_scores_of_binary_rewards_are_probabilities() -> None:
    bandit = teach(new(reward="binary"), rewards=REWARDS > 0)

    scores = bandit.select(CONTEXTS, k=4).scores

    assert ((scores > 0) & (scores < 1)).all()


def test_each_update_counts_as_a_version(trained: Bandit) -> None:
    teach(trained)

    assert trained.version == trained.select(CONTEXTS).version == 2


def test_an_update_with_nothing_in_it_changes_nothing(trained: Bandit) -> None:
    before = compiled(trained)

    trained.update(contexts=CONTEXTS[:0], arms=[], rewards=[])

    assert trained.version == 1
    assert trained.policy is before.policy


def test_an_update_leaves_the_old_policy_as_it_was(trained: Bandit) -> None:
    before = compiled(trained)
    expected = compiled(trained).select(CONTEXTS)

    teach(trained)

    assert same_decision(before.select(CONTEXTS), expected)


# -- seeds


@pytest.mark.parametrize("search", SEARCHES)
def test_the_same_seed_makes_the_same_decisions_and_learns_the_same(search: str) -> None:
    one, two = teach(new(search=search)), teach(new(search=search))

    assert same_weights(one, two)
    assert same_decision(one.select(CONTEXTS), two.select(CONTEXTS))


def test_another_seed_makes_other_decisions() -> None:
    one, two = new(seed=1).select(CONTEXTS), new(seed=2).select(CONTEXTS)

    assert (one.rows != two.rows).any()


def test_seeds_of_a_decision_replay_it(by_search: Bandit) -> None:
    bandit = compiled(by_search)
    first = bandit.select(CONTEXTS, k=3)
    bandit.select(CONTEXTS)

    assert same_decision(bandit.select(CONTEXTS, k=3, seeds=first.seeds), first)


def test_a_replay_does_not_use_up_seeds(trained: Bandit) -> None:
    other = compiled(trained)

    trained.select(CONTEXTS, seeds=np.arange(len(CONTEXTS)))

    assert same_decision(trained.select(CONTEXTS), other.select(CONTEXTS))


def test_one_by_one_or_in_a_batch_the_decisions_are_the_same(by_search: Bandit) -> None:
    one, batch = compiled(by_search), compiled(by_search)

    singles = [one.select(CONTEXTS[i : i + 1]) for i in range(6)]
    together = batch.select(CONTEXTS[:6])

    assert [single.seeds[0] for single in singles] == together.seeds.tolist()
    assert [single.scores[0, 0] for single in singles] == pytest.approx(
        together.scores[:, 0].tolist(), rel=1e-3, abs=1e-3
    )


def test_more_contexts_than_fit_a_chunk_are_decided_alike(trained: Bandit) -> None:
    contexts = np.repeat(CONTEXTS, 8, axis=0)  # 320, beyond two chunks
    seeds = np.repeat(np.arange(len(CONTEXTS), dtype=np.uint64), 8)

    rows = trained.select(contexts, seeds=seeds, eligible=np.ones((320, 120), dtype=bool)).rows

    assert (rows.reshape(40, 8) == rows[::8]).all()


def test_without_exploring_the_seeds_do_not_matter(trained: Bandit) -> None:
    one = trained.select(CONTEXTS, explore=False)
    two = trained.select(CONTEXTS, explore=False)

    assert (one.seeds != two.seeds).all()
    assert (one.rows == two.rows).all()


def test_without_exploring_an_exhaustive_bandit_takes_the_highest_mean() -> None:
    bandit = teach(new(search="exhaustive", posterior="neural"))
    policy = bandit.policy

    decision = bandit.select(CONTEXTS, explore=False)

    contexts = bandit.blueprint.context.read(CONTEXTS, what="contexts")
    means = policy.model.mean(policy.model.embed_contexts(contexts))
    embedded = policy.model.embed_arms(policy.arms.features)  # type: ignore[union-attr]
    best = means(embedded[None]).amax(1)
    assert decision.scores[:, 0] == pytest.approx(
        policy.model.in_rewards(best).numpy(), rel=1e-3, abs=1e-3
    )


def test_thompson_sampling_explores(trained: Bandit) -> None:
    same_context = np.repeat(CONTEXTS[:1], 64, axis=0)

    assert len(set(trained.select(same_context).arms)) > 1


# -- k arms and who may be chosen


def test_k_arms_are_different_and_best_first(by_search: Bandit) -> None:
    decision = compiled(by_search).select(CONTEXTS, k=7)

    assert decision.rows.shape == (len(CONTEXTS), 7)
    assert all(len(set(arms)) == 7 for arms in decision.arms)
    assert (np.diff(decision.scores, axis=1) <= 0).all()


def test_more_arms_than_there_are_gives_all_and_then_nothing(by_search: Bandit) -> None:
    decision = compiled(by_search).select(CONTEXTS[:3], k=len(ARMS) + 5)

    assert all(sorted(arms) == list(range(len(ARMS))) for arms in decision.arms)
    assert (decision.rows[:, -5:] == -1).all()
    assert np.isneginf(decision.scores[:, -5:]).all()


def test_k_arms_come_back_however_large_k_is() -> None:
    bandit = teach(new(arms=vectors_of(5_000, 3)))

    decision = bandit.select(CONTEXTS[:2], k=3_000)

    assert [len(set(arms)) for arms in decision.arms] == [3_000, 3_000]


@pytest.mark.parametrize("share", [1 / 120, 0.01, 0.5, 1.0])
def test_eligible_arms_are_kept_to_at_any_selectivity(by_search: Bandit, share: float) -> None:
    open_arms = np.random.default_rng(5).permutation(120)[: max(1, round(share * 120))]

    decision = compiled(by_search).select(CONTEXTS, k=5, eligible=open_arms.tolist())

    kept = min(5, len(open_arms))
    places = decision.rows[:, :kept]
    assert np.isin(places, open_arms).all()
    assert (decision.rows[:, kept:] == -1).all()
    assert all(len(set(row)) == kept for row in places.tolist())


def test_each_context_may_have_its_own_list(by_search: Bandit) -> None:
    lists = [[i, i + 1, i + 2] for i in range(len(CONTEXTS))]

    decision = compiled(by_search).select(CONTEXTS, k=2, eligible=lists)

    assert all(set(arms) <= set(own) for arms, own in zip(decision.arms, lists, strict=True))


def test_few_eligible_arms_are_searched_exactly(trained: Bandit) -> None:
    """So few arms are all scored: any search finds the best."""
    mask = np.random.default_rng(1).random((len(CONTEXTS), 120)) < 0.4
    exact = replace(trained.policy, search=Exhaustive())
    inputs = trained.blueprint.context.read(CONTEXTS, what="contexts")

    found = trained.select(CONTEXTS, eligible=mask)
    best = exact.select(inputs, seeds=found.seeds, eligible=torch.from_numpy(mask))

    scores = trained.policy.model.in_rewards(best.scores).numpy()
    assert found.scores == pytest.approx(scores, rel=1e-4, abs=1e-4)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.99]),
    k=st.integers(1, 12),
    is_shared=st.booleans(),
)
def test_any_mask_gives_k_open_arms_or_all_of_them(
    by_search: Bandit, seed: int, share: float, k: int, is_shared: bool
) -> None:
    chance = np.random.default_rng(seed)
    mask = chance.random((1 if is_shared else 6, 120)) < share
    mask[np.arange(len(mask)), chance.integers(120, size=len(mask))] = True

    decision = compiled(by_search).select(
        CONTEXTS[:6], k=k, eligible=mask[0] if is_shared else mask
    )

    for row, eligible in zip(decision.rows, np.broadcast_to(mask, (6, 120)), strict=True):
        taken = row[row >= 0]
        assert len(set(taken.tolist())) == len(taken) == min(k, int(eligible.sum()))
        assert eligible[taken].all()


def test_large_catalogues_keep_to_what_is_eligible() -> None:
    bandit = teach(new(arms=vectors_of(5_000, 3)))
    mask = np.random.default_rng(0).random((4, 5_000)) < np.array([[0.0], [0.01], [0.5], [1.0]])
    mask[0, 17] = True

    rows = bandit.select(CONTEXTS[:4], k=20, eligible=mask).rows

    assert rows[0].tolist() == [17, *[-1] * 19]
    assert (rows[1:] >= 0).all()
    assert all(own[row].all() for own, row in zip(mask[1:], rows[1:], strict=True))


# -- cost


def test_the_default_generator_asks_at_most_128_scores_and_2_look_ups() -> None:
    for explore in ("ts", "ucb"):
        bandit = new(arms=vectors_of(2_000, 3), exploration=explore, posterior="neural")

        decision = teach(bandit).select(CONTEXTS)

        assert decision.evaluations.max() <= 128
        assert decision.lookups.max() <= 2


def test_an_exhaustive_search_says_that_it_scored_every_arm() -> None:
    decision = teach(new(search="exhaustive")).select(CONTEXTS)

    assert (decision.evaluations == len(ARMS)).all()
    assert not decision.lookups.any()


# -- arms that come and go


def test_added_arms_can_be_chosen_at_once(by_search: Bandit) -> None:
    bandit = compiled(by_search)
    bandit.add_arms(vectors_of(2, 3, seed=9), ids=["new", "newer"])

    chosen = bandit.select(CONTEXTS[:1], k=122).arms[0]

    assert len(bandit) == 122
    assert {"new", "newer"} <= set(chosen)
    assert bandit.select(CONTEXTS[:2], eligible=["new"]).arms == ["new", "new"]


def test_removed_arms_are_never_chosen_again(by_search: Bandit) -> None:
    bandit = compiled(by_search)
    favourites = sorted(set(bandit.select(CONTEXTS, k=3).rows.ravel().tolist()))
    bandit.discard_arms(favourites)

    at_once = bandit.select(CONTEXTS, k=5)
    teach(bandit)
    later = bandit.select(CONTEXTS, k=5)

    assert len(bandit) == 120 - len(favourites)
    for decision in (at_once, later):
        assert (decision.rows >= 0).all()
        assert not np.isin(decision.rows, favourites).any()


def test_a_removed_id_can_be_added_again_as_another_arm() -> None:
    bandit = teach(new(ids=[f"arm {row}" for row in range(120)]))
    bandit.discard_arms(["arm 5"])
    bandit.add_arms(ARMS[5:6], ids=["arm 5"])

    decision = bandit.select(CONTEXTS[:2], eligible=["arm 5"])
    bandit.update(contexts=CONTEXTS[:2], arms=decision.arms, rewards=[1, 2])

    assert decision.arms == ["arm 5", "arm 5"]
    assert (decision.rows == 120).all()


def test_a_removed_arm_is_not_eligible(trained: Bandit) -> None:
    trained.discard_arms([4])

    with pytest.raises(EligibilityError):
        trained.select(CONTEXTS, eligible=[4])


def test_rewards_of_removed_arms_are_still_learned_from(trained: Bandit) -> None:
    trained.discard_arms([4])

    trained.update(contexts=CONTEXTS[:1], arms=[4], rewards=[1.0])

    assert trained.version == 2


def test_arms_can_be_added_before_any_update() -> None:
    bandit = new()
    bandit.add_arms(vectors_of(3, 3))

    assert len(bandit) == 123
    assert bandit.select(CONTEXTS, eligible=[122]).arms == [122] * len(CONTEXTS)


def test_all_arms_but_one_may_be_removed(by_search: Bandit) -> None:
    bandit = compiled(by_search)
    bandit.discard_arms(range(119))

    assert bandit.select(CONTEXTS, k=2).rows.tolist() == [[119, -1]] * len(CONTEXTS)


def test_arms_that_are_all_alike_can_be_chosen_from() -> None:
    decision = teach(new(arms=np.ones((40, 3)))).select(CONTEXTS, k=3)

    assert all(len(set(arms)) == 3 for arms in decision.arms)


# -- kinds of arms and contexts, end to end


def test_arms_known_by_id_alone_learn_embeddings_of_their_own() -> None:
    names = [f"song {row}" for row in range(30)]
    bandit = teach(Bandit(ids=names, context=4, reward="real"))

    bandit.add_arms(ids=["song 30"])
    teach(bandit)

    assert set(bandit.select(CONTEXTS).arms) <= {*names, "song 30"}
    assert bandit.select(CONTEXTS[:1], eligible=["song 30"]).arms == ["song 30"]


def test_features_and_ids_can_be_learned_together() -> None:
    bandit = teach(new(embed_ids=True))

    bandit.add_arms(vectors_of(2, 3, seed=8))
    teach(bandit)

    assert bandit.select(CONTEXTS[:1], eligible=[121]).arms == [121]


@pytest.mark.parametrize("search", SEARCHES)
def test_points_of_a_box_stay_inside_it(search: str) -> None:
    bandit = teach(new(arms=Box([0, -5], [1, 5], cover=256), search=search))

    arms = np.asarray(bandit.select(CONTEXTS).arms)

    assert arms.shape == (len(CONTEXTS), 2)
    assert (arms >= [0, -5]).all()
    assert (arms <= [1, 5]).all()


@pytest.mark.parametrize(
    "search",
    [
        "generator",
        "ascent",
        "exhaustive",
    ],
)
def test_a_box_gives_k_different_points(search: str) -> None:
    bandit = teach(new(arms=Box([0, -5], [1, 5], cover=256), search=search))

    decision = bandit.select(CONTEXTS[:3], k=5)

    assert np.isfinite(decision.scores).all()
    assert all(len(np.unique(points, axis=0)) == 5 for points in np.asarray(decision.arms))


def test_sparse_contexts_and_arms_work_end_to_end() -> None:
    contexts = scipy.sparse.random(40, 500, density=0.02, format="csr", random_state=1)
    arms = scipy.sparse.random(60, 300, density=0.05, format="csr", random_state=2)
    bandit = teach(Bandit(arms=arms, context=Sparse(500), reward="real"), contexts)

    bandit.add_arms(arms[:2])

    assert len(bandit.select(contexts).arms) == 40


def test_image_contexts_and_arms_work_end_to_end() -> None:
    images = np.random.default_rng(0).random((40, 10, 9))
    bandit = teach(Bandit(arms=images[:20], context=Image(10, 9), reward="real"), images)

    assert len(bandit.select(images).arms) == 40


def test_contexts_may_be_ids() -> None:
    users = np.arange(40) % 7
    bandit = teach(Bandit(arms=ARMS, context=Ids(7), reward="real"), users)

    assert len(bandit.select(users).arms) == 40


@pytest.mark.parametrize(
    ("explore", "search", "posterior"),
    list(product(["ts", "ucb", "greedy"], SEARCHES, ["dropout", "gradient", "last-layer"])),
)
def test_every_combination_of_parts_runs(explore: str, search: str, posterior: str) -> None:
    bandit = teach(
        new(exploration=explore, search=search, posterior=posterior, reward="binary"),
        rewards=REWARDS > 0,
    )

    assert np.isfinite(bandit.select(CONTEXTS, k=2).scores).all()


def test_parts_may_be_given_as_objects() -> None:
    bandit = teach(new(exploration=ThompsonSampling(scale=2.0), search=Exhaustive(chunk=7)))
    plain = teach(new(exploration=Greedy(), search=Exhaustive()))

    assert (bandit.select(CONTEXTS).evaluations == 120).all()
    assert plain.select(CONTEXTS).rows.shape == (40, 1)


def test_wildly_scaled_features_are_no_obstacle() -> None:
    bandit = teach(
        new(arms=ARMS * [1e-12, 1.0, 1e12]), CONTEXTS * [1e-20, 1.0, 1e6, 1e20], REWARDS * 1e9
    )

    assert np.isfinite(bandit.select(CONTEXTS * [1e-20, 1.0, 1e6, 1e20]).scores).all()


def test_no_contexts_give_no_decisions(trained: Bandit) -> None:
    assert trained.select(CONTEXTS[:0]).arms == []


def test_what_the_caller_does_with_an_array_later_does_not_matter() -> None:
    contexts, arms, rewards = CONTEXTS.copy(), ARMS.copy(), REWARDS.copy()
    reused, kept = new(arms=arms), new()
    rows = np.arange(40)
    reused.update(contexts=contexts, arms=rows, rewards=rewards)
    kept.update(contexts=CONTEXTS, arms=rows, rewards=REWARDS)

    for buffer in (contexts, arms, rewards):
        buffer[:] = 0
    for bandit in (reused, kept):
        bandit.update(contexts=CONTEXTS, arms=rows, rewards=REWARDS)

    assert same_weights(reused, kept)


def test_features_for_arms_that_are_known_by_id_alone_are_refused() -> None:
    bandit = Bandit(ids=["a", "b"], context=4)

    with pytest.raises(InputError):
        bandit.add_arms(ARMS[:2])


def test_discarding_returns_the_ids_that_were_not_there(trained: Bandit) -> None:
    assert trained.discard_arms([1]) == []
    assert trained.discard_arms([1, 2, "x"]) == [1, "x"]


@pytest.mark.parametrize("updates", [0, 1])
@pytest.mark.parametrize("arms", [20, 600])  # by torch, and compiled
def test_stale_ids_are_dropped_from_what_is_eligible(arms: int, updates: int) -> None:
    features = np.random.default_rng(0).normal(size=(arms, 3))
    bandit = Bandit(arms=features, context=2, preset="tests/golden/quick_training.toml")
    contexts = np.zeros((2, 2))
    for _ in range(updates):
        bandit.update(contexts=contexts, arms=[0, 1], rewards=[0.0, 1.0])
    bandit.discard_arms([3])

    decision = bandit.select(contexts, eligible=[1, 3, arms + 5])

    assert decision.arms == [1, 1]
    assert decision.dropped.tolist() == [2, 2]
    assert bandit.select(contexts, eligible=[1]).dropped.tolist() == [0, 0]
    with pytest.raises(UnknownArmError, match=str(arms + 5)):
        bandit.select(contexts, eligible=[1, arms + 5], strict=True)
    chosen = bandit.freeze().select_one(contexts[0], eligible=[1, 3])
    assert (chosen.arm, chosen.dropped) == (1, 1)
