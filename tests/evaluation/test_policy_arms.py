"""A log takes over the arms of a frozen bandit, where these cover it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit import Bandit, FrozenBandit
from fastbandit.evaluation import LoggedRounds
from fastbandit.evaluation.policy_arms import with_arms_of

IDS = ["a", "b", "c", "d"]


def frozen(**told: Any) -> FrozenBandit:
    settings = {"arms": np.eye(4), "ids": IDS, "context": 1, **told}
    return Bandit(**settings).freeze()


def log(ids: list[str], **told: Any) -> LoggedRounds:
    return LoggedRounds(np.zeros((2, 1)), [0, 1], [0.0, 1.0], [0.5, 0.5], ids=ids, **told)


def test_rounds_are_put_among_all_arms_of_the_bandit() -> None:
    found = with_arms_of(log(["c", "a"]), frozen())

    assert list(found.ids or ()) == IDS
    assert found.chosen.tolist() == [2, 0]
    assert len(found.vectors) == 4
    assert "those of the snapshot" in found.notes[-1]


def test_what_describes_an_arm_goes_with_its_id() -> None:
    bandit = frozen()
    live = bandit.parts[1]
    bandit.discard_arms(["b"])

    found = with_arms_of(log(["d", "a"]), bandit)

    told = dict(zip(found.ids or (), found.vectors.tolist(), strict=True))
    assert told == {id: live.points_of(live.ids.rows([id]))[0].tolist() for id in "acd"}


@pytest.mark.parametrize(
    ("rounds", "told"),
    [
        (log(["a", "gone"]), {}),
        (log(["a", "b"]), {"arms": None}),
        (log(["a", "b"], vectors=np.eye(2)), {}),
    ],
)
def test_rounds_stay_as_they_are_where_the_arms_do_not_fit(
    rounds: LoggedRounds, told: dict[str, Any]
) -> None:
    assert with_arms_of(rounds, frozen(**told)) is rounds
