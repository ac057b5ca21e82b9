"""A select is read once: what cannot be used names its field, and nothing else gets through."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.serving.problems import Rejection
from fastbandit.serving.schemas import SelectRequest
from fastbandit.serving.select_reader import SelectReader
from fastbandit.settings.service import Config, ContextConfig
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import CONTEXT, Caller, config_in, run


def log_of(config: Config) -> list[Any]:
    log = SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)
    events = list(log.read())
    log.close()
    return events


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "context"),
        ({"context": CONTEXT, "contexts": [CONTEXT]}, "context"),
        ({"context": [1.0]}, "context"),
        ({"contexts": [CONTEXT, [1.0]]}, "contexts[1]"),
        ({"context": {"a": 1.0}}, "context"),
        ({"context": CONTEXT, "k": 0}, "k"),
        ({"context": CONTEXT, "k": 2, "propensity": True}, "k"),
        ({"context": CONTEXT, "eligible": ["nobody"]}, "eligible"),
        ({"context": CONTEXT, "eligible": {"prise": 1}}, "eligible"),
        ({"context": CONTEXT, "eligible": {"price": {"<": "x"}}}, "eligible"),
        ({"context": CONTEXT, "eligible": {"price": {"<": -1}}}, "eligible"),
        ({"context": CONTEXT, "eligible": {"a": {"b": {"c": {"d": {"e": 1}}}}}}, "eligible"),
        ({"context": CONTEXT, "id": "a b"}, "id"),
        ({"context": CONTEXT, "ids": ["a", "b"]}, "ids"),
        ({"contexts": [CONTEXT, CONTEXT], "ids": ["a", "a"]}, "ids"),
        ({"contexts": [CONTEXT], "id": "a"}, "id"),
        ({"context": CONTEXT, "colour": "red"}, "colour"),
        ({"context": [1.0, 2.0, 1e39]}, "context"),
    ],
)
def test_a_wrong_select_names_the_field_and_the_fix(config: Config, told: Any, field: str) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (422, field), reply
        assert reply.body["fix"]
        assert reply.headers["content-type"] == "application/problem+json"

    run(config, story)
    assert log_of(config) == []


def test_nesting_without_end_is_rejected(config: Config) -> None:
    async def story(ask: Caller) -> None:
        deep = b'{"context": [0, 0, 0], "eligible": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001
        assert (await ask("POST", "/v1/select", raw=deep)).status in (400, 422)

    run(config, story)


def test_named_features_may_come_in_any_order(first_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")
    config = config_in(tmp_path, context__features=0, context__names=("x", "y", "z"))

    async def story(ask: Caller) -> None:
        told = {"context": {"z": 3.0, "x": 1.0, "y": 2.0}}
        assert (await ask("POST", "/v1/select", told)).status == 200
        missing = await ask("POST", "/v1/select", {"context": {"x": 1.0, "y": 2.0}})
        assert missing.body["field"] == "context.z"

    run(config, story)
    assert log_of(config)[0].context == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e31, -1e31])
def test_no_context_that_is_not_finite_reaches_a_bandit(wrong: float) -> None:
    reader = SelectReader(ContextConfig(features=3))

    for context in ([wrong, 1.0, 2.0], [1.0, wrong, 2.0], [1.0, 2.0, wrong]):
        with pytest.raises(Rejection) as found:
            reader.read(SelectRequest(contexts=[[0.0, 0.0, 0.0], context]))
        assert found.value.problem.field == "contexts[1]"
        assert found.value.problem.fix == "Scale the features."


def test_contexts_are_read_into_rows_of_numbers() -> None:
    parsed = SelectReader(ContextConfig(names=("a", "b"))).read(
        SelectRequest(contexts=[{"b": 2.0, "a": 1.0}, [3.0, 4.0]], ids=["x", "y"])
    )

    assert parsed.contexts == [[1.0, 2.0], [3.0, 4.0]]
    assert parsed.ids == ["x", "y"]
    assert parsed.inputs.dense is not None
    assert parsed.inputs.dense.dtype == np.float32
    assert parsed.inputs.dense.tolist() == parsed.contexts


@pytest.mark.parametrize("value", ["x", True, None, [1.0]])
def test_a_named_number_that_is_none_is_rejected(value: Any) -> None:
    reader = SelectReader(ContextConfig(names=("age", "mobile")))

    with pytest.raises(Rejection) as caught:
        reader.read(SelectRequest(context={"age": 1.0, "mobile": value}))

    assert caught.value.problem.field == "context.mobile"
