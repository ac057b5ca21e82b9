"""Ids of arms go through JSON and back."""

from __future__ import annotations

import json
from collections.abc import Hashable
from math import inf

import pytest

from fastbandit.errors import SettingError
from fastbandit.files.json_ids import id_from_json, id_to_json


@pytest.mark.parametrize("id", ["a", 7, 0.5, ("a", 7), ("a", ("b", 1)), ()])
def test_an_id_comes_back_as_it_was(id: Hashable) -> None:
    assert id_from_json(json.loads(json.dumps(id_to_json(id)))) == id


@pytest.mark.parametrize("id", [None, inf, frozenset("a"), ("a", None)])
def test_an_id_that_json_cannot_hold_is_an_error(id: Hashable) -> None:
    with pytest.raises(SettingError, match="strings, finite numbers or tuples"):
        id_to_json(id)
