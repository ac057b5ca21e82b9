"""Columns of a log are checked: each message names the field, the value and the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from little_log import (
    CHOSEN,
    CONTEXTS,
    EVERY,
    PROPENSITIES,
    REWARDS,
    TARGET,
    little_log,
)

from fastbandit.errors import (
    FastbanditError,
    InputError,
    NotFiniteError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.evaluation import (
    LoggedRounds,
)

Do = Callable[[], Any]
NAN = float("nan")


def logged(**changes: Any) -> Do:
    return lambda: little_log(**changes)


MISTAKES: dict[str, tuple[Do, type[FastbanditError], str]] = {
    "a propensity of zero": (
        logged(propensities=[0.5, 0.0, 0.2, 0.5]),
        InputError,
        r"propensities need to be above 0 and at most 1: got 0 in round 1, counted.* log that one",
    ),
    "propensities in percent": (
        logged(propensities=[50.0, 25.0, 20.0, 50.0]),
        InputError,
        r"propensities .* got 50 in round 0, counted from 0 \(4 such\)\. Divide percentages by 100",
    ),
    "logarithms for propensities": (
        logged(propensities=[0.5, -1.4, 0.2, 0.5]),
        InputError,
        r"propensities .* got -1.4 in round 1, counted.* not their logarithms",
    ),
    "a propensity that was not logged": (
        logged(propensities=[0.5, NAN, 0.2, 0.5]),
        InputError,
        r"propensities .* got nan in round 1, counted.* Drop the rounds",
    ),
    "no propensities": (
        logged(propensities=None),
        InputError,
        r"propensities need a probability for each round: got None\. .* give 1 / arms",
    ),
    "propensities as text": (
        logged(propensities=["high"] * 4),
        InputError,
        r"propensities need to be numbers: got list such as \['high'\]",
    ),
    "a reward that is NaN": (
        logged(rewards=[1.0, 0.0, NAN, 0.5]),
        NotFiniteError,
        r"rewards need to be finite: got nan in round 2, counted.* put 0",
    ),
    "rewards and propensities swapped": (
        lambda: LoggedRounds(CONTEXTS, CHOSEN, PROPENSITIES, [1.0, 0.0, 1.0, 0.0]),
        InputError,
        r"propensities .* got 0 in round 1, counted.* changed places: swap them",
    ),
    "chosen and propensities swapped": (
        lambda: LoggedRounds(CONTEXTS, PROPENSITIES, REWARDS, CHOSEN),
        InputError,
        r"chosen arms need to be rows, .* got \[0.5\] .* LoggedRounds\(contexts, chosen",
    ),
    "ids for rows": (
        logged(chosen=["a", "b", "c", "a"]),
        InputError,
        r"chosen arms need to be rows, .* got \['a'\]",
    ),
    "slates for rows": (
        logged(chosen=EVERY),
        ShapeError,
        r"chosen arms need the shape \(n,\): got \(4, 3\)\. .* of a slate, the first",
    ),
    "rewards of a slate": (
        logged(rewards=TARGET),
        ShapeError,
        r"rewards need the shape \(n,\): got \(4, 3\)",
    ),
    "one reward too few": (
        logged(rewards=[1.0, 0.0, 1.0]),
        ShapeError,
        r"got 4 contexts, 4 chosen, 3 rewards, 4 propensities\. Drop the rounds",
    ),
    "an empty log": (
        lambda: LoggedRounds(np.empty((0, 1)), np.empty(0, dtype=int), [], []),
        ShapeError,
        r"at least one round: got none",
    ),
    "contexts as strings": (
        logged(contexts=["young", "old", "old", "young"]),
        InputError,
        r"contexts need to be numbers: got .*'young'.* by name, in a frame",
    ),
    "contexts as dicts": (
        logged(contexts=[{"age": 3}] * 4),
        InputError,
        r"contexts need to be numbers: got object .*dict.* by name, in a frame",
    ),
    "contexts in one dimension": (
        logged(contexts=np.arange(4.0)),
        ShapeError,
        r"contexts need the shape \(n, d\): got \(4,\)",
    ),
    "a context that is NaN": (
        logged(contexts=[[0.0], [NAN], [2.0], [3.0]]),
        NotFiniteError,
        r"contexts need finite numbers: got nan in row 1 ",
    ),
    "a context that single precision cannot hold": (
        logged(contexts=[[0.0], [1e300], [2.0], [3.0]]),
        NotFiniteError,
        r"contexts need finite numbers: got inf in row 1 ",
    ),
    "a row beyond the arms": (
        logged(chosen=[0, 1, 7, 0]),
        UnknownArmError,
        r"rows from 0 to 2: got 7 \(1 such\)\. .* as arms=",
    ),
    "a negative row": (logged(chosen=[0, -1, 2, 0]), UnknownArmError, r"from 0 to 2: got -1"),
    "vectors of too few arms": (
        logged(vectors=np.ones((2, 2))),
        ShapeError,
        r"vectors need one row for each of the 3 arms: got 2",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_value_and_its_fix(name: str) -> None:
    do, error, said = MISTAKES[name]

    with pytest.raises(error, match=said):
        do()


def test_a_log_among_more_arms_has_the_same_rounds() -> None:
    found = little_log(ids=["a", "b", "c"]).with_more_arms(["d"])

    assert list(found.ids or ()) == ["a", "b", "c", "d"]
    assert (found.arms, found.chosen.tolist()) == (4, CHOSEN)


def test_equal_propensities_are_uniform() -> None:
    assert little_log(propensities=[1 / 3] * 4).is_uniform
    assert not little_log().is_uniform
