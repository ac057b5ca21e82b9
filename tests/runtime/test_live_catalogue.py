"""Arms that come and go while decisions are made."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fakes import seeds_of, vectors_of
from little_frozen import CONTEXTS, fresh, frozen_bandit

from fastbandit import FrozenBandit
from fastbandit.errors import (
    DuplicateArmError,
    EligibilityError,
    FastbanditError,
    InputError,
    NotFiniteError,
    ShapeError,
)
from fastbandit.runtime.ahead import decide

ARMS = vectors_of(1500, 3, seed=1)
CONTEXT = CONTEXTS[0]
BATCH = 500
SELECTS = int(os.environ.get("FASTBANDIT_STRESS_SELECTS", "100_000"))
"""So many decisions the test with threads makes; set it to 1_000_000 and more for the full one."""


@pytest.fixture(scope="module")
def shared(little_training: None) -> FrozenBandit:
    return frozen_bandit(arms=ARMS, posterior="neural")


@pytest.fixture
def frozen(shared: FrozenBandit) -> FrozenBandit:
    return fresh(shared)


def best(frozen: FrozenBandit) -> Any:
    return frozen.select_one(CONTEXT, explore=False).arm


def far_better_arms(frozen: FrozenBandit, count: int) -> Any:
    """Return features of arms further along the way to where the best arm lies."""
    return ARMS[[best(frozen)] * count] * np.linspace(1.5, 2, count, dtype=np.float32)[:, None]


# -- removing


def test_a_discarded_arm_is_not_chosen_again(frozen: FrozenBandit) -> None:
    seen = []
    for _ in range(30):
        seen.append(best(frozen))
        frozen.discard_arms(seen[-1:])

    assert len(set(seen)) == 30
    assert len(frozen) == 1470


@pytest.mark.parametrize("left", [1, 5, 1023, 1025])
def test_whatever_is_left_can_be_chosen(frozen: FrozenBandit, left: int) -> None:
    frozen.discard_arms(range(left, 1500))

    decision = frozen.select(CONTEXTS, k=7)

    assert decision.rows.max() < left
    assert ((decision.rows >= 0).sum(1) == min(7, left)).all()


def test_where_few_arms_are_left_all_are_scored(frozen: FrozenBandit) -> None:
    frozen.discard_arms(range(100, 1500))

    assert frozen.select_one(CONTEXT).evaluations == 100


def test_discarding_returns_the_ids_that_were_not_there(frozen: FrozenBandit) -> None:
    frozen.discard_arms([0])

    assert frozen.discard_arms([5, 0, "never"]) == [0, "never"]
    assert 5 not in frozen
    assert len(frozen) == 1498


def test_a_discarded_arm_is_not_eligible_either(frozen: FrozenBandit) -> None:
    frozen.discard_arms([3])

    assert frozen.select_one(CONTEXT, eligible=[3, 4]).arm == 4
    with pytest.raises(EligibilityError):
        frozen.select_one(CONTEXT, eligible=[3])


def test_a_list_of_booleans_is_a_mask(frozen: FrozenBandit) -> None:
    frozen.discard_arms(range(20, 1500))

    assert frozen.select_one(CONTEXT, eligible=[row == 7 for row in range(1500)]).row == 7
    assert (
        fresh(frozen_of(20)).select_one(CONTEXT, eligible=[row == 7 for row in range(20)]).row == 7
    )


def frozen_of(count: int) -> FrozenBandit:
    return frozen_bandit(arms=ARMS[:count])


# -- adding


def test_an_added_arm_can_be_chosen_at_once(frozen: FrozenBandit) -> None:
    frozen.add_arms(far_better_arms(frozen, 3), ids=["a", "b", "c"])

    assert frozen.waiting == 3
    assert best(frozen) in {"a", "b", "c"}
    assert frozen.select_one(CONTEXT, eligible=["b"]).row == 1501


def test_an_added_arm_is_named_after_its_row_where_arms_have_no_ids(frozen: FrozenBandit) -> None:
    frozen.add_arms(ARMS[:2])

    assert frozen.select_one(CONTEXT, eligible=[1501]).arm == 1501


def test_an_added_arm_has_the_score_of_its_copy(frozen: FrozenBandit) -> None:
    frozen.add_arms(ARMS[:1], ids=["copy"])

    old, new = (frozen.select_one(CONTEXT, seed=4, eligible=[arm]) for arm in (0, "copy"))

    assert new.score == pytest.approx(old.score, rel=1e-5)


def test_an_added_arm_can_be_discarded(frozen: FrozenBandit) -> None:
    frozen.add_arms(far_better_arms(frozen, 1), ids=["a"])
    frozen.discard_arms(["a"])

    assert best(frozen) != "a"
    assert len(frozen) == 1500


def test_an_id_is_free_once_its_arm_is_discarded(frozen: FrozenBandit) -> None:
    first = best(frozen)
    frozen.discard_arms([first])
    frozen.add_arms(-5 * ARMS[:1], ids=[first])

    assert frozen.select_one(CONTEXT, eligible=[first]).row == 1500
    frozen.discard_arms([first])
    with pytest.raises(EligibilityError):
        frozen.select_one(CONTEXT, eligible=[first])


def test_arms_known_by_ids_alone_start_without_an_embedding(little_training: None) -> None:
    ids = [f"arm {number}" for number in range(40)]
    frozen = frozen_bandit(ids=ids, posterior="neural")

    frozen.add_arms(ids=["new", "newer"])

    scores = [frozen.select_one(CONTEXT, seed=1, eligible=[arm]).score for arm in ("new", "newer")]
    assert scores[0] == scores[1]


def test_arms_with_weights_of_their_own_start_with_the_prior(little_training: None) -> None:
    frozen = frozen_bandit(ids=[f"arm {number}" for number in range(40)])

    frozen.add_arms(ids=["new", "newer"])

    scores = [
        frozen.select_one(CONTEXT, explore=False, eligible=[arm]).score for arm in ("new", "newer")
    ]
    assert scores[0] == scores[1]


def test_many_added_arms_go_into_partitions_by_themselves(frozen: FrozenBandit) -> None:
    frozen.add_arms(vectors_of(1100, 3, seed=5))
    assert frozen._arms._indexing is not None
    frozen._arms._indexing.join()

    assert frozen.waiting == 0
    assert len(frozen) == 2600


# -- partitions made anew


def test_arms_move_into_partitions(frozen: FrozenBandit) -> None:
    frozen.add_arms(vectors_of(300, 3, seed=5))
    frozen.discard_arms([*range(200), 1600])

    frozen.index(wait=True)

    assert frozen.waiting == 0
    assert len(frozen) == 1599
    assert len(frozen._arms.now.arms.order) == 1599


def test_new_partitions_hold_no_arm_that_was_discarded(frozen: FrozenBandit) -> None:
    frozen.add_arms(vectors_of(40, 3, seed=5))
    frozen.discard_arms([*range(300), 1510])

    frozen.index(wait=True)

    rows = frozen.select(CONTEXTS, k=200).rows
    assert set(rows.ravel().tolist()) <= {*range(300, 1540)} - {1510}


def test_an_arm_has_the_same_score_in_partitions_and_before(frozen: FrozenBandit) -> None:
    frozen.add_arms(vectors_of(40, 3, seed=5))
    some = [3, 700, 1500, 1539]
    before = frozen.select(CONTEXTS, seeds=seeds_of(30), eligible=some, k=4)

    frozen.index(wait=True)

    after = frozen.select(CONTEXTS, seeds=seeds_of(30), eligible=some, k=4)
    np.testing.assert_array_equal(after.rows, before.rows)
    np.testing.assert_allclose(after.scores, before.scores, rtol=1e-5, atol=1e-6)


def test_arms_that_come_and_go_while_partitions_are_made_are_kept_and_left_out(
    frozen: FrozenBandit,
) -> None:
    frozen.add_arms(ARMS[:5], ids=list("abcde"))
    before = frozen._arms.now
    arms = before.in_partitions()
    frozen.discard_arms(["b", 7])
    frozen.add_arms(ARMS[:2], ids=["b", "f"])

    frozen._arms.now = frozen._arms.now.moved_into(arms, before)

    assert len(frozen) == 1500 + 5 - 2 + 2
    assert frozen.waiting == 2
    assert frozen.select_one(CONTEXT, eligible=["b"]).row == 1505
    with pytest.raises(EligibilityError):
        frozen.select_one(CONTEXT, eligible=[7])


def test_partitions_can_be_made_again_and_again(frozen: FrozenBandit) -> None:
    for first in range(0, 1400, 200):
        frozen.discard_arms(range(first, first + 200))
        frozen.index()

    assert len(frozen) == 100
    assert frozen.select(CONTEXTS).rows.min() >= 1400


# -- what is rejected


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda frozen: frozen.discard_arms(range(1, 1500)), EligibilityError),
        (lambda frozen: frozen.add_arms(ARMS[:1], ids=[5]), DuplicateArmError),
        (lambda frozen: frozen.add_arms(ARMS[:2], ids=["a"]), InputError),
        (lambda frozen: frozen.add_arms(ARMS[:2], ids=["a", "a"]), DuplicateArmError),
        (lambda frozen: frozen.add_arms(ARMS[:2, :2]), ShapeError),
        (lambda frozen: frozen.add_arms([[np.nan, 0, 0]]), NotFiniteError),
        (lambda frozen: frozen.add_arms(None), FastbanditError),
    ],
)
def test_a_change_that_is_rejected_leaves_everything_as_it_was(
    frozen: FrozenBandit, change: Callable[[FrozenBandit], None], error: type[Exception]
) -> None:
    frozen.discard_arms([0])
    before = frozen._arms.now

    with pytest.raises(error):
        change(frozen)

    assert frozen._arms.now is before


# -- threads


@pytest.mark.parametrize("is_one", [True, False])
def test_an_arm_discarded_while_a_decision_is_made_is_not_its_answer(
    frozen: FrozenBandit, monkeypatch: pytest.MonkeyPatch, is_one: bool
) -> None:
    removed = []

    def decide_and_lose(*given: Any) -> None:
        decide(*given)
        if len(removed) < 3:
            removed.append(int(given[4][0][0, 0]))
            frozen.discard_arms(removed[-1:])

    monkeypatch.setattr("fastbandit.runtime.frozen.decide", decide_and_lose)
    monkeypatch.setattr("fastbandit.runtime.batches.decide", decide_and_lose)
    row = frozen.select_one(CONTEXT).row if is_one else frozen.select([CONTEXT]).rows[0, 0]

    assert len(set(removed)) == 3
    assert row not in removed


class Shop:
    """Takes the arms that are wanted most away, brings others, and makes partitions anew.

    `gone` holds the rows whose removal has returned: a row never comes back.
    """

    def __init__(self, frozen: FrozenBandit) -> None:
        self.frozen = frozen
        self.gone: frozenset[int] = frozenset()
        self.rounds = 0
        self.is_closed = threading.Event()

    def run(self) -> None:
        while not self.is_closed.wait(0.001):  # let others have Python's lock
            wanted = self.frozen.select(CONTEXTS[:8])
            self.frozen.discard_arms(dict.fromkeys(wanted.arms))
            self.gone |= frozenset(wanted.rows[:, 0].tolist())
            self.frozen.add_arms(vectors_of(8, 3, seed=self.rounds))
            if self.rounds % 10 == 0:
                self.frozen.index(wait=False)
            self.rounds += 1


def decide_often(frozen: FrozenBandit, shop: Shop, *, selects: int, seed: int) -> int:
    """Decide in batches and one by one; count the answers that were gone before they began."""
    contexts = vectors_of(BATCH, 4, seed=seed)
    wrong = 0
    for _ in range(-(-selects // (BATCH + 1))):
        gone = shop.gone
        rows = frozen.select(contexts, threads=1).rows[:, 0]
        wrong += len(gone.intersection(rows.tolist()))
        gone = shop.gone
        wrong += frozen.select_one(contexts[0]).row in gone
    return wrong


def test_no_decision_gives_an_arm_that_was_discarded_before_it_began(frozen: FrozenBandit) -> None:
    shop = Shop(frozen)
    with ThreadPoolExecutor(4) as pool:
        keeper = pool.submit(shop.run)
        customers = [
            pool.submit(decide_often, frozen, shop, selects=SELECTS // 3, seed=number)
            for number in range(3)
        ]
        wrong = [customer.result() for customer in customers]
        shop.is_closed.set()
        keeper.result()

    assert wrong == [0, 0, 0]
    assert shop.rounds > 10
    assert len(shop.gone) > 10


def test_threads_that_only_decide_agree_with_one_that_decides_alone(frozen: FrozenBandit) -> None:
    seeds = seeds_of(200).tolist()
    alone = [frozen.select_one(CONTEXT, seed=seed) for seed in seeds]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: frozen.select_one(CONTEXT, seed=seed), seeds))

    assert together == alone


def test_no_seed_is_used_twice(frozen: FrozenBandit) -> None:
    with ThreadPoolExecutor(4) as pool:
        seeds = list(pool.map(lambda _: frozen.select_one(CONTEXT).seed, range(400)))

    assert len(set(seeds)) == 400
