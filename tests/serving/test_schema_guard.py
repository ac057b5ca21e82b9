"""A version that was made with other schemas does not serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit import Bandit, FrozenBandit, Schema
from fastbandit.errors import SettingError
from fastbandit.serving.schema_guard import SchemaGuard, arm_schema_of
from fastbandit.settings.service import ArmsConfig, Config, ContextConfig
from fastbandit.storage.snapshot_version import Cut, Snapshot

AGE: dict[str, Any] = {"age": {"kind": "number"}, "name": {"kind": "category", "levels": ["x"]}}
ARMS = [{"price": 1.5, "genre": "jazz"}, {"price": 2.5, "genre": "rock"}]


def frozen(context: Any, arms: Any = ARMS) -> FrozenBandit:
    return Bandit(context=context, arms=arms, search="exhaustive").freeze()


def snapshot(*names: str) -> Snapshot:
    notes = {"context_names": list(names)} if names else {}
    return Snapshot(0, None, Cut(), "", notes, Path())


def config(folder: Path, columns: Any = None, arms: Any = None, **context: Any) -> Config:
    paths = {"context.json": columns, "arms.json": arms}
    for name, one in paths.items():
        (folder / name).write_text(json.dumps({"columns": one}))
    if columns is not None:
        context["schema"] = str(folder / "context.json")
    path = "" if arms is None else str(folder / "arms.json")
    return Config(context=ContextConfig(**context), arms=ArmsConfig(schema=path))


def test_the_same_schemas_serve(tmp_path: Path) -> None:
    arms = {"id": {"kind": "ignored"}, "price": {"kind": "number"}, "genre": {"kind": "category"}}

    SchemaGuard(config(tmp_path, AGE, arms)).check(
        frozen(Schema.from_dict({"columns": AGE})), snapshot()
    )


def test_columns_may_stand_in_another_order(tmp_path: Path) -> None:
    arms = {"genre": {"kind": "category"}, "price": {"kind": "number"}}
    turned = dict(reversed(AGE.items()))

    SchemaGuard(config(tmp_path, turned, arms)).check(
        frozen(Schema.from_dict({"columns": AGE})), snapshot()
    )


def test_a_version_may_have_learned_more_of_a_mapping(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"others": {"kind": "mapping", "takes_others": True}}
    grown = Schema.from_dict({"columns": columns}).grown([{"age": 3.0, "city": "Oslo"}] * 2)

    SchemaGuard(config(tmp_path, columns)).check(frozen(grown), snapshot())
    columns["others"]["slots"] = 9
    other = SchemaGuard(config(tmp_path, columns))
    with pytest.raises(SettingError, match="'others' has slots = 9"):
        other.check(frozen(grown), snapshot())


@pytest.mark.parametrize(
    ("arms", "difference"),
    [
        ({"price": {"kind": "number"}}, "'genre' is missing"),
        ({"price": {"kind": "category"}, "genre": {"kind": "category"}}, "'price' has kind"),
    ],
)
def test_another_schema_of_the_arms_is_named(tmp_path: Path, arms: Any, difference: str) -> None:
    with pytest.raises(SettingError, match=rf"arms\.schema .* {difference}"):
        SchemaGuard(config(tmp_path, None, arms, features=2)).check(frozen(2), snapshot())


def test_a_schema_that_the_folder_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="the folder has none"):
        SchemaGuard(config(tmp_path, AGE)).check(frozen(2), snapshot())


def test_a_schema_that_the_config_lacks_is_named(tmp_path: Path) -> None:
    bandit = frozen(Schema.from_dict({"columns": AGE}))

    with pytest.raises(SettingError, match="is not set, and the folder has one"):
        SchemaGuard(config(tmp_path, features=2)).check(bandit, snapshot())


@pytest.mark.parametrize(("names", "is_same"), [(("a", "b"), True), (("b", "a"), False)])
def test_names_stand_in_the_order_of_before(
    tmp_path: Path, names: tuple[str, ...], is_same: bool
) -> None:
    guard = SchemaGuard(config(tmp_path, names=names))

    guard.check(frozen(2), snapshot())  # versions of before have no names
    if is_same:
        guard.check(frozen(2), snapshot("a", "b"))
    else:
        with pytest.raises(SettingError, match="another order, 'b' where 'a' stood"):
            guard.check(frozen(2), snapshot("a", "b"))


def test_arms_by_position_have_no_schema() -> None:
    assert arm_schema_of(frozen(2, np.eye(3))) is None
    assert arm_schema_of(frozen(2)) is not None
