"""The description of the interface: what it says is frozen, and the docs say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastbandit.serving.openapi import openapi
from tests.serving.little_service import Caller, config_in, run

FROZEN = Path(__file__).parent / "openapi-v1.json"
DOCS = Path(__file__).parents[2] / "docs" / "serving.md"


def test_the_interface_is_the_one_that_was_promised() -> None:
    """A change here is a change for every caller: say so in the changelog, then renew the file.

    To renew: python -m tests.serving.test_openapi
    """
    assert openapi() == json.loads(FROZEN.read_text())


@pytest.mark.parametrize("path", [*openapi()["paths"], "/openapi.json", "/v1/console"])
def test_a_route_is_documented(path: str) -> None:
    methods = openapi()["paths"].get(path, {"get": {}})
    for method in methods:
        assert f"| `{method.upper()} {path}` |" in DOCS.read_text()


def test_the_service_serves_its_description(tmp_path: Path) -> None:
    async def story(ask: Caller) -> None:
        assert (await ask("GET", "/openapi.json")).body == openapi()

    run(config_in(tmp_path), story)


def test_every_route_of_the_app_is_described(tmp_path: Path) -> None:
    async def story(ask: Caller) -> None:
        described = {
            (path, method.upper())
            for path, methods in openapi()["paths"].items()
            for method in methods
        }
        served = {(p, m) for p, methods in ask.app.routes.items() for m in methods}
        others = {path for path, _ in served - described}
        assert described <= served
        assert others == {
            path for path in others if path in ("/", "/openapi.json") or "console" in path
        }

    run(config_in(tmp_path), story)


if __name__ == "__main__":
    FROZEN.write_text(json.dumps(openapi(), indent=1, sort_keys=True) + "\n")
