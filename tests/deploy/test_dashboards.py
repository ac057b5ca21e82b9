"""Dashboard and alerts ask for metrics that a real service exports, in PromQL that parses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.deployed import DEPLOY, ROOT, read_yaml
from tests.serving.little_service import Caller, begin, run

parser = pytest.importorskip("prometheus_client.parser")

DASHBOARD = json.loads((DEPLOY / "grafana/dashboards/fastbandit.json").read_text())
RULES = [rule for group in read_yaml(DEPLOY / "alerts.yml")["groups"] for rule in group["rules"]]
OF_PROMETHEUS = {"up": {"job", "instance"}}
FROM_SCRAPING = {"job", "instance"}


def asked() -> Iterator[tuple[str, str]]:
    """Return each expression with the name of who asks."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for mark in DASHBOARD["annotations"]["list"]:
        yield mark["name"], mark["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        yield variable["name"], variable["definition"]
    for rule in RULES:
        yield rule["alert"], rule["expr"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Ask a service for its metrics: the name of each sample, with its labels."""

    async def story(ask: Caller) -> Any:
        made = await ask.select()
        await ask("POST", "/v1/reward", {"decision": made["decision"], "value": 1})
        return (await ask("GET", "/metrics")).body.decode()

    text = run(begin(tmp_path_factory.mktemp("served")), story)
    found: dict[str, set[str]] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize(("who", "expression"), list(asked()))
def test_a_metric_that_is_asked_for_is_exported(
    who: str, expression: str, exported: dict[str, set[str]]
) -> None:
    names = re.findall(r"\b(?:fastbandit_\w+|up\b)", expression)

    assert names
    assert set(names) <= {*exported, *OF_PROMETHEUS}


@pytest.mark.parametrize(("who", "expression"), list(asked()))
def test_a_label_that_is_asked_for_is_exported(
    who: str, expression: str, exported: dict[str, set[str]]
) -> None:
    known = set().union(*exported.values(), FROM_SCRAPING)
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    matched = re.findall(r"(\w+)\{([^}]*)\}", expression)

    assert {one.strip() for group in grouped for one in group.split(",")} <= known
    for name, matchers in matched:
        labels = set(re.findall(r"(\w+)\s*[=!]", matchers))
        own = exported.get(name, set()) | OF_PROMETHEUS.get(name, set()) | FROM_SCRAPING
        assert labels <= own, f"{name} has no {labels - own}"


@pytest.mark.parametrize(
    ("who", "expression"),
    [one for one in asked() if not one[1].startswith("label_values(")],  # Grafana's own word
)
def test_an_expression_is_promql(who: str, expression: str) -> None:
    promql = pytest.importorskip("promql_parser")

    assert promql.parse(expression.replace("$decider", ".*"))


def test_every_alert_says_what_and_how_urgent() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]


def test_every_alert_is_in_the_runbook() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")

    for rule in RULES:
        assert f"`{rule['alert']}`" in page


def test_panels_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_panels_have_numbers_and_a_source_that_is_provisioned() -> None:
    (source,) = read_yaml(DEPLOY / "grafana/provisioning/datasources/prometheus.yaml")[
        "datasources"
    ]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]

    assert len(set(ids)) == len(ids)
    for panel in DASHBOARD["panels"]:
        assert panel["datasource"]["uid"] == source["uid"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_grafana_finds_the_dashboard() -> None:
    (provider,) = read_yaml(DEPLOY / "grafana/provisioning/dashboards/fastbandit.yaml")["providers"]
    mounted = read_yaml(DEPLOY / "compose.yaml")["services"]["grafana"]["volumes"]

    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in mounted


def test_prometheus_reads_the_alerts() -> None:
    told = read_yaml(DEPLOY / "prometheus.yml")

    assert [Path(name).name for name in told["rule_files"]] == ["alerts.yml"]
