"""The console shows what a version learned to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastbandit import Bandit, Schema
from fastbandit.serving.console.learned_names import learned_names
from fastbandit.serving.secret_columns import SecretColumns
from tests.serving.little_service import config_in

ROWS = [{"age": float(n), "city": f"c{n % 30}"} for n in range(90)]


def tagged(**marks: Any) -> dict[str, Any]:
    return {"columns": {"tags": {"kind": "mapping", **marks}, "age": {"kind": "number"}}}


@pytest.fixture
def nothing_secret(tmp_path: Path) -> SecretColumns:
    return SecretColumns(config_in(tmp_path))


def test_names_levels_and_slots_of_contexts_and_arms_are_shown(
    nothing_secret: SecretColumns,
) -> None:
    context = Schema.open(slots=64).grown(ROWS)
    arms = Schema.open(slots=8).table([{"price": 1.0}, {"price": 2.0}])
    frozen = Bandit(context=context, arms=arms, ids=["a", "b"], search="exhaustive").freeze()

    first, second = learned_names(frozen, nothing_secret)

    assert (first["of"], first["used"], first["slots"], first["known"]) == ("contexts", 31, 64, 2)
    assert first["names"][0] == {"name": "age", "levels": None, "count": 0}
    assert (len(first["names"][1]["levels"]), first["names"][1]["count"]) == (20, 30)
    assert (second["of"], [one["name"] for one in second["names"]]) == ("arms", ["price"])


def test_nothing_is_shown_where_all_was_declared(nothing_secret: SecretColumns) -> None:
    frozen = Bandit(context=2, ids=["a", "b"], search="exhaustive").freeze()

    assert learned_names(frozen, nothing_secret) == []


@pytest.mark.parametrize("marks", [{}, {"secret": True}])
def test_nothing_is_shown_of_a_secret_mapping(tmp_path: Path, marks: dict[str, Any]) -> None:
    path = tmp_path / "context.json"
    path.write_text(json.dumps(tagged(secret=True)))
    config = config_in(tmp_path, context__features=0, context__schema=str(path))
    rows = [{"tags": {"word": "hush"}, "age": float(n)} for n in range(20)]
    context = Schema.from_dict(tagged(**marks)).grown(rows)  # the version may not know of it
    frozen = Bandit(context=context, ids=["a", "b"], search="exhaustive").freeze()

    assert "hush" in str(context.as_dict())
    assert learned_names(frozen, SecretColumns(config)) == []
