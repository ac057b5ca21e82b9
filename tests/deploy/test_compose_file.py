"""The compose file is one by compose's own schema, and its parts fit together."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from tests.deploy.deployed import DEPLOY, compose, read_yaml

jsonschema = pytest.importorskip("jsonschema")


def test_it_follows_the_schema_of_compose() -> None:
    pytest.importorskip("check_jsonschema")
    vendored = resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    schema = json.loads(vendored.read_text(encoding="utf-8"))

    jsonschema.validators.validator_for(schema)(schema).validate(compose())


def test_everything_that_is_named_is_declared() -> None:
    told = compose()
    for name, service in told["services"].items():
        named = {one.split(":")[0] for one in service.get("volumes", ())}
        assert {one for one in named if not one.startswith(".")} <= set(told["volumes"]), name
        assert set(service.get("secrets", ())) <= set(told["secrets"])
        assert set(service.get("depends_on", ())) <= set(told["services"])


def test_nothing_but_this_machine_reaches_a_port() -> None:
    for service in compose()["services"].values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")


def test_deciders_differ_in_their_volume_alone() -> None:
    deciders = [own for name, own in compose()["services"].items() if name.startswith("decider-")]

    assert len(deciders) == 3
    assert len({str(without(own, "volumes")) for own in deciders}) == 1


def without(told: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != key}


def test_postgresql_archives_what_it_writes() -> None:
    words = compose()["services"]["postgres"]["command"]

    assert "archive_mode=on" in words
    assert any(word.startswith("archive_command=test ! -f /archive/%f && ") for word in words)


def test_prometheus_shows_a_key_from_its_secret() -> None:
    (job,) = read_yaml(DEPLOY / "prometheus.yml")["scrape_configs"]
    (secret,) = compose()["services"]["prometheus"]["secrets"]

    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
