"""What a frozen bandit is given, encoded; what it answers, decoded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fastbandit.errors import InputError, ShapeError
from fastbandit.features.kinds import Dense, Ids
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.encodings import Encoding

NOTHING = np.zeros((1, 0), np.float32)
DENSE = Encoding(Dense(2), np.array([[1, 0, 3], [0, 2, 0]], np.float32), NOTHING, NOTHING)
CODEC = Codec(
    context=DENSE,
    arm=DENSE,
    inverse=np.eye(2, dtype=np.float32),
    centre=np.array([1.0, 1.0], np.float32),
    reward="real",
    reward_shift=1.0,
    reward_scale=2.0,
    seed=0,
    version=1,
)


def test_new_arms_have_coordinates() -> None:
    assert CODEC.points([[1.0, 2.0]], None).tolist() == [[3.0, 3.0]]


def test_arms_known_by_ids_alone_have_no_features() -> None:
    by_id = replace(CODEC, arm=Encoding(Ids(3), NOTHING, NOTHING, np.ones((3, 2), np.float32)))

    assert by_id.points(None, ["new"]).tolist() == [[-1.0, -1.0]]  # an unknown id adds nothing
    with pytest.raises(InputError, match="ids alone"):
        by_id.points([[1.0, 2.0]], ["new"])


def test_one_context_is_one_row() -> None:
    assert CODEC.read_one([1.0, 2.0]).dense.tolist() == [[1.0, 2.0]]  # type: ignore[union-attr]
    with pytest.raises(ShapeError):
        CODEC.read_one([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("reward", ["real", "binary"])
def test_one_score_is_decoded_as_many_are(reward: str) -> None:
    codec = replace(CODEC, reward=reward)  # type: ignore[arg-type]

    many = codec.in_rewards(np.array([-2.0, 0.5], np.float32))

    assert many == pytest.approx([codec.in_reward(-2.0), codec.in_reward(0.5)])


def test_what_has_no_score_has_no_reward() -> None:
    assert CODEC.in_rewards(np.array([-np.inf], np.float32))[0] == -np.inf
