"""Numbers that a part cannot work with are refused when it is made, by its own name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import (
    BestArmBandit,
    Box,
    Dense,
    GeneratorSearch,
    GradientAscent,
    Ids,
    Image,
    LinearTS,
    LinUCB,
    Sparse,
    ThompsonSampling,
    evaluate,
)
from fastbandit.declaration import need, range_of
from fastbandit.errors import SettingError
from fastbandit.evaluation import CrossFit, Interval, LoggedRounds
from fastbandit.evaluation.estimators import IPS
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.reward.model import NetworkSettings
from fastbandit.settings.files import sections, settable

NETWORK = {"embedding": 8, "hidden": (8,), "weight_penalty": 1.0, "dropout_penalty": 1.0}
LOG = LoggedRounds(
    contexts=vectors_of(20, 2),
    chosen=np.arange(20),
    rewards=np.ones(20),
    propensities=np.full(20, 0.5),
)


def bad_values(own: Field[Any], hint: Any) -> list[Any]:
    """Return values of a field's type that it cannot mean."""
    limits = range_of(own)
    if limits.choices:
        return ["neither"]
    if hint in (int, int | None):
        return [-1] if limits.least == 0 else [-1, 0]
    if hint in (float, float | None):
        low = [] if limits.least == -math.inf else [-1.0]
        return [math.nan, math.inf, *low, *([0.0] if limits.above == 0 else [])]
    return [] if hint is bool else [(), (8, 0)]


def bad_fields() -> Iterator[tuple[type, str, Any]]:
    for kind in sections().values():
        hints = settable(kind)
        for own in fields(kind):
            yield from ((kind, own.name, value) for value in bad_values(own, hints[own.name]))


def made(kind: type, **values: Any) -> Any:
    return kind(**{**(NETWORK if kind is NetworkSettings else {}), **values})


@pytest.mark.parametrize(("kind", "name", "value"), list(bad_fields()))
def test_a_part_refuses_a_field_that_it_cannot_work_with(kind: type, name: str, value: Any) -> None:
    with pytest.raises(SettingError) as refused:
        made(kind, **{name: value})

    message = str(refused.value)
    assert message.startswith(f"{kind.__name__} needs {name} to be ")
    assert f"got {value!r}. Change it" in message


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Box, {"low": (0.0,), "high": (1.0,), "cover": 0}),
        (Dense, {"dim": 0}),
        (Sparse, {"dim": -1}),
        (Ids, {"count": 0}),
        (Image, {"height": 28, "width": -28}),
        (LinearTS, {"arms": np.eye(3), "context": 2, "scale": math.nan}),
        (LinearTS, {"arms": np.eye(3), "context": 2, "half_life": 0.0}),
        (LinUCB, {"arms": np.eye(3), "context": 2, "width": -1.0}),
        (LinUCB, {"arms": np.eye(3), "context": 2, "ridge": 0.0}),
        (LinUCB, {"arms": np.eye(3), "context": 0}),
        (BestArmBandit, {"arms": np.eye(3), "prior_count": math.nan}),
        (Interval, {"confidence": 95.0}),
        (Interval, {"resamples": 0}),
        (IPS, {"clip": math.nan}),
        (evaluate, {"log": LOG, "policy": "uniform", "model": CrossFit("ridge", folds=1)}),
        (evaluate, {"log": LOG, "policy": "uniform", "seed": -1}),
    ],
)
def test_other_public_names_refuse_theirs(kind: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="got"):
        kind(**settings)


def test_every_part_is_made_by_default() -> None:
    assert all(made(kind) == made(kind) for kind in [*sections().values(), DropoutPosterior])


def test_whole_numbers_may_be_numpys() -> None:
    heads = next(own for own in fields(GeneratorSearch) if own.name == "heads")

    assert need(heads, int, np.int64(3))[1]
    assert not need(heads, int, np.int64(0))[1]


def test_a_climb_may_have_any_score_that_is_enough() -> None:
    assert GradientAscent(enough=-3.0).enough == -3.0


def test_a_refusal_names_what_a_field_is_when_left_out() -> None:
    with pytest.raises(SettingError, match=r"or leave it out for 1\.0\."):
        ThompsonSampling(scale=-1.0)
