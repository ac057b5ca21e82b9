"""A walk through a mapping meets each feature once, by its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.features import mapping_walks
from fastbandit.features.mapping_columns import FeatureMapping
from fastbandit.features.mapping_walks import Name, Walker


def met(value: Any, walker: Walker | None = None) -> list[tuple[str, Any]]:
    """Return all names and values of a walk."""
    found: list[tuple[str, Any]] = []

    def take(name: Name, one: Any, out: Any) -> None:
        out.append((name.path, one))

    (walker or Walker(FeatureMapping("x"), take, take, {})).walk(value, found)
    return found


def test_a_name_is_its_path() -> None:
    value = {"user": {"age": 3, "home": {"city": "Oslo"}}, "old": False, "none": None}

    assert met(value) == [("user.age", 3), ("user.home.city", "Oslo"), ("old", "false")]


def test_members_of_lists_are_levels_positions_or_merged() -> None:
    value = [{"tags": ["a", True, 2.5, None]}, {"sizes": np.array([1.0, 2.0])}]

    assert met(value) == [
        *(("tags", "a"), ("tags", "true"), ("tags.2", 2.5)),
        *(("sizes.0", 1.0), ("sizes.1", 2.0)),
    ]


def test_more_names_than_are_remembered_are_met_alike(monkeypatch: Any) -> None:
    value = {f"n{n}": {"a": n} for n in range(9)}
    known = met(value)
    monkeypatch.setattr(mapping_walks, "HELD", 2)

    assert met(value) == known
