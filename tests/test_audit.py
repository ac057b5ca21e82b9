"""How far a search is from the exhaustive choice under the same draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import BowlReward, catalogue_of, compiled, same_decision, seeds_of, vectors_of

from fastbandit import Bandit, Exhaustive, Greedy, ThompsonSampling
from fastbandit.audit import audit
from fastbandit.interfaces import ArmSpace
from fastbandit.policy import Policy
from fastbandit.score import Choice, Score, Seeds
from fastbandit.types import Inputs

pytestmark = pytest.mark.usefixtures("little_training")

ARMS, CONTEXTS = vectors_of(200, 3, seed=1), vectors_of(50, 3, seed=2)


class FirstArm:
    """A search that always takes arm 0."""

    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        eligible: torch.Tensor | None = None,
    ) -> Choice:
        points = arms.all().points[:, :1].expand(len(seeds), -1, -1)
        rows = torch.zeros(len(seeds), 1, dtype=torch.int64)
        ones = torch.ones(len(seeds), dtype=torch.int64)
        return Choice(rows, points, score(points), ones, 0 * ones)


def trained(search: str) -> Bandit:
    bandit = Bandit(arms=ARMS, context=3, reward="real", search=search, seed=1)
    bandit.update(contexts=CONTEXTS, arms=range(50), rewards=CONTEXTS[:, 0])
    return bandit


def test_an_exhaustive_search_has_quality_1() -> None:
    report = trained("exhaustive").audit(CONTEXTS)

    assert report.quality == pytest.approx(1)
    assert (report.evaluations, report.lookups, report.contexts) == (200, 0, 50)


@pytest.mark.parametrize("search", ["generator", "ascent"])
def test_other_searches_have_a_quality_of_at_most_1(search: str) -> None:
    report = trained(search).audit(CONTEXTS)

    assert report.qualities.max() <= 1 + 1e-4
    assert 0.8 < report.quality <= 1 + 1e-4
    assert report.qualities.mean() == pytest.approx(report.quality)


def test_quality_is_the_share_of_the_way_from_the_mean_to_the_best() -> None:
    arms = catalogue_of(ARMS)
    policy = Policy(BowlReward(3), Greedy(), FirstArm(), arms)

    report = audit(policy, Inputs(dense=CONTEXTS), seeds=seeds_of(50))

    scores = -np.square(CONTEXTS[:, None].astype(float) - ARMS[None]).sum(-1)
    mean, best = scores.mean(1), scores.max(1)
    assert report.qualities == pytest.approx((scores[:, 0] - mean) / (best - mean), abs=1e-3)
    assert report.evaluations == 1


def test_both_searches_meet_the_same_draw() -> None:
    policy = Policy(BowlReward(3), ThompsonSampling(), Exhaustive(chunk=7), catalogue_of(ARMS))

    assert audit(policy, Inputs(dense=CONTEXTS), seeds=seeds_of(50)).qualities == pytest.approx(1)


def test_arms_that_are_all_alike_leave_nothing_to_miss() -> None:
    bandit = Bandit(arms=np.ones((40, 3)), context=3, reward="real")
    bandit.update(contexts=CONTEXTS[:40], arms=range(40), rewards=CONTEXTS[:40, 0])

    assert bandit.audit(CONTEXTS).quality == pytest.approx(1, abs=1e-3)


def test_an_audit_changes_nothing() -> None:
    bandit = trained("generator")
    untouched = compiled(bandit)

    bandit.audit(CONTEXTS)

    assert same_decision(bandit.select(CONTEXTS), untouched.select(CONTEXTS))


def test_removed_arms_are_not_what_an_audit_compares_with() -> None:
    bandit = trained("ascent")
    favourites = sorted(set(bandit.select(CONTEXTS, explore=False).arms))
    bandit.discard_arms(favourites)
    bandit.update(contexts=CONTEXTS[:5], arms=range(5), rewards=CONTEXTS[:5, 0])
    before = bandit.audit(CONTEXTS)

    # The same bandit in a catalogue that never held those arms would find the same choices.
    seeds = np.arange(50, dtype=np.uint64)
    found = bandit.select(CONTEXTS, seeds=seeds, k=1).scores[:, 0]
    everything = bandit.select(CONTEXTS, seeds=seeds, k=len(bandit)).scores[:, 0]

    assert np.allclose(found, everything, atol=1e-3)  # the search misses nothing that is alive
    assert before.quality == pytest.approx(1, abs=0.01)
