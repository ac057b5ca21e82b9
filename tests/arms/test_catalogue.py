"""A finite set of arms that is replaced, never changed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of

from fastbandit import Exhaustive
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import IdTable
from fastbandit.errors import DuplicateArmError, EligibilityError, ShapeError
from fastbandit.types import Inputs

VECTORS = vectors_of(60, 3)


def embed(inputs: Inputs) -> torch.Tensor:
    return torch.as_tensor(inputs.dense)


def test_each_arm_is_placed_where_its_embedding_is() -> None:
    arms = catalogue_of(VECTORS)

    assert torch.allclose(
        arms.to_embedding(arms.all().points[0]), torch.from_numpy(VECTORS), atol=1e-4
    )


def test_adding_returns_another_catalogue_and_leaves_this_one() -> None:
    arms = catalogue_of(VECTORS)

    grown = arms.add(["new"], Inputs(dense=vectors_of(1, 3, seed=4)), embed=embed)

    assert (len(arms), len(grown)) == (60, 61)
    assert torch.equal(grown.all().points[:, :60], arms.all().points)
    assert grown.nearest(grown.all().points[:, 60:], 1, eligible=None).rows.tolist() == [[60]]


def test_discarding_returns_another_catalogue_and_leaves_this_one() -> None:
    arms = catalogue_of(VECTORS)

    rest = arms.discard([3, 4])[0]

    assert (len(arms), len(rest)) == (60, 58)
    assert arms.is_live(3)
    assert not rest.is_live(3)


def test_a_new_embedding_no_longer_indexes_discarded_arms() -> None:
    arms = catalogue_of(VECTORS).discard(range(5))[0].embedded_by(embed)

    near = arms.nearest(arms.all().points[:, :5], 60, eligible=None).rows
    beside = arms.neighbours(torch.arange(5, 60)[None]).rows

    assert near.max() == 59
    assert not ((near >= 0) & (near < 5)).any()
    assert beside[beside >= 0].min() >= 5


def test_arms_around_a_point_stand_where_they_are() -> None:
    arms = catalogue_of(vectors_of(500, 3))

    around = arms.around(arms.all().points[:, :4], 2, eligible=None)

    is_arm = around.rows >= 0
    assert torch.equal(around.points[is_arm], arms.all().points[0, around.rows[is_arm]])


def test_a_discarded_arm_is_left_out_by_the_mask_alone() -> None:
    arms = catalogue_of(VECTORS).discard([3])[0]
    points = arms.all().points[:, 3:4]

    plain = arms.around(points, 2, eligible=None).rows
    masked = arms.around(points, 2, eligible=torch.from_numpy(arms.live)[None]).rows

    assert set(plain[0].tolist()) == {*range(60), -1}
    assert set(masked[0].tolist()) == {*range(3), *range(4, 60)}


def test_no_index_is_built_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    monkeypatch.setattr("fastbandit.arms.lookup.build_partitions", built.append)
    contexts = torch.from_numpy(vectors_of(2, 3, seed=1))

    arms = catalogue_of(VECTORS)
    score = BowlReward(3).mean(contexts).through(arms.to_embedding)
    Exhaustive().best(score, arms, count=1, seeds=seeds_of(2))

    assert built == []


def test_samples_are_arms_that_can_be_chosen() -> None:
    arms = catalogue_of(VECTORS).discard(range(50))[0]

    rows = arms.sample(500, rng=torch.Generator().manual_seed(1)).rows

    assert set(rows[0].tolist()) == set(range(50, 60))


def test_the_last_arm_cannot_be_discarded() -> None:
    with pytest.raises(EligibilityError, match="discarding 60 arms"):
        catalogue_of(VECTORS).discard(range(60))


def test_new_arms_need_ids_of_their_own_and_features() -> None:
    arms = catalogue_of(VECTORS)
    one = Inputs(dense=VECTORS[:1])

    with pytest.raises(DuplicateArmError, match="got 5"):
        arms.add([5], one, embed=embed)
    with pytest.raises(ShapeError, match="2 ids and 1 rows"):
        arms.add(["a", "b"], one, embed=embed)


def test_few_returns_the_arms_of_those_contexts_that_have_few() -> None:
    arms = catalogue_of(VECTORS)
    eligible = torch.zeros(3, 60, dtype=torch.bool)
    eligible[0, [5, 9]] = True
    eligible[1, 30:] = True
    eligible[2, 7] = True

    few = arms.few(eligible, 10)

    assert few is not None
    assert few.rows.tolist() == [[5, 9], [-1, -1], [7, -1]]


def test_an_aligned_embedding_leaves_the_arms_where_they_were() -> None:
    arms = catalogue_of(VECTORS)
    turn = torch.linalg.qr(torch.from_numpy(vectors_of(3, 3, seed=8)))[0]

    again = arms.embedded_by(lambda inputs: embed(inputs) @ turn + 1)

    assert torch.allclose(again.all().points, arms.all().points, atol=1e-2)


def test_a_catalogue_before_any_model_holds_ids_and_features() -> None:
    arms = Catalogue.of(IdTable(["a", "b"]), Inputs(dense=VECTORS[:2]))

    grown = arms.add(["c"], Inputs(dense=VECTORS[2:3]), embed=None)

    assert len(grown) == 3
    assert np.array_equal(grown.features.dense, VECTORS[:3])
    assert grown.vectors is None
