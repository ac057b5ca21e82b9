"""Every route answers as it did when its answers were recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from golden_compare import as_json, first_difference
from golden_routes import RECORDED, SCENES, answers_of, on_the_wire

from tests.serving.little_service import begin

WANTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the first version of a service."""
    folder = tmp_path_factory.mktemp("golden") / "begun"
    begin(folder)
    return folder


@pytest.mark.parametrize("scene", SCENES)
def test_answers_are_those_recorded(scene: str, begun: Path, tmp_path: Path) -> None:
    got = as_json(answers_of(scene, tmp_path / "service", begun))
    assert [one["asked"] for one in got] == [one["asked"] for one in WANTED[scene]]
    for wanted, answer in zip(WANTED[scene], got, strict=True):
        different = first_difference(wanted, answer)
        assert not different, f"{scene}, {wanted['asked']}: {different}"


def test_refusals_on_the_wire_are_those_recorded() -> None:
    assert on_the_wire() == WANTED["on the wire"]


def test_every_route_was_asked() -> None:
    every = next(one for one in WANTED["what it is"] if one["asked"] == "GET /openapi.json")
    asked = {tuple(one["asked"].split()[:2]) for scene in SCENES for one in WANTED[scene]}
    for route in every["body"]["routes"]:
        method, path = route.split()
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        assert any(m == method.upper() and pattern.fullmatch(p) for m, p in asked), route
