"""Coordinates in fewer bits: how near they stay, and what they save."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes import LITTLE, vectors_of

from fastbandit import Bandit, FrozenBandit
from fastbandit.errors import SettingError
from fastbandit.runtime.parts import packed
from fastbandit.settings.files import Settings

pytestmark = pytest.mark.slow

CONTEXTS = vectors_of(40, 3, seed=5)
HASTY = {"iterations": LITTLE.reward.iterations}


@pytest.fixture(scope="module")
def bandit() -> Bandit:
    arms = vectors_of(900, 6)
    sections = {"training.reward": HASTY, "training.generator": HASTY}
    settings = Settings(sections=sections)
    bandit = Bandit(arms=arms, context=3, reward="real", search="generator", preset=settings)
    rows = np.arange(200)
    contexts = vectors_of(200, 3, seed=1)
    bandit.update(contexts=contexts, arms=rows, rewards=contexts[:, 0] * arms[rows, 0])
    return bandit


@pytest.mark.parametrize(("kept", "most"), [("float32", 0.0), ("int16", 1e-4), ("int8", 0.03)])
def test_vectors_come_back_nearly_as_they_were(kept: str, most: float) -> None:
    vectors = vectors_of(500, 7)

    held, decode = packed(vectors, kept)

    assert held.dtype == kept
    assert np.abs(held * decode[0] + decode[1] - vectors).max() <= most


def test_a_column_that_is_the_same_for_all_stays_so() -> None:
    vectors = np.full((5, 2), 3.25, np.float32)

    held, decode = packed(vectors, "int8")

    assert held * decode[0] + decode[1] == pytest.approx(vectors)


@pytest.mark.parametrize("kept", ["int16", "int8"])
def test_a_packed_bandit_chooses_arms_that_score_nearly_the_same(bandit: Bandit, kept: str) -> None:
    whole, packed_one = bandit.freeze(), bandit.freeze(dtype=kept)
    seeds = np.arange(40)

    wanted = whole.select(CONTEXTS, seeds=seeds).scores
    found = packed_one.select(CONTEXTS, seeds=seeds).scores

    assert np.abs(found - wanted).max() < 0.05 * (1 + np.abs(wanted).max())
    assert packed_one.bytes_per_arm < whole.bytes_per_arm - 10


def test_a_packed_bandit_is_saved_and_goes_on_packed(bandit: Bandit, tmp_path: Path) -> None:
    bandit.freeze(dtype="int8").save(tmp_path / "frozen")
    frozen = FrozenBandit.load(tmp_path / "frozen")
    before = frozen.bytes_per_arm

    frozen.add_arms(vectors_of(20, 6, seed=9))
    frozen.index()

    assert frozen.waiting == 0
    assert len(frozen) == 920
    assert frozen.bytes_per_arm == pytest.approx(before, rel=0.1)


def test_an_unknown_kind_of_numbers_is_refused(bandit: Bandit) -> None:
    with pytest.raises(SettingError, match="int16"):
        bandit.freeze(dtype="float16")
