"""New versions reach all deciders soon, without a failed request or a mixed answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.faults import publishing as campaign
from lab.faults.publishing import PublishReport, publish_command, publish_versions
from lab.faults.report import tables

WHOLE = PublishReport(
    times=2,
    seed=0,
    deciders=3,
    arms=100,
    under_load=2,
    seconds=[0.5, 1.25],
    requests=1_000,
    failed=0,
    versions=3,
    unknown=0,
    checked=100,
    mixed=0,
)


def test_versions_reach_all_deciders_whole() -> None:
    report = publish_versions(2, arms=50, rate=10.0, every=4.0)

    assert report.is_whole, report
    assert report.is_prompt, report
    assert report.versions == 3


@pytest.mark.parametrize("change", [{"failed": 1}, {"unknown": 1}, {"mixed": 1}, {"under_load": 1}])
def test_a_report_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, **change).is_whole


@pytest.mark.parametrize(
    ("change", "status"), [({}, 0), ({"failed": 1}, 1), ({"seconds": [0.5, 10.5]}, 1)]
)
def test_the_command_fails_where_a_request_does_or_a_decider_is_late(
    change: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = replace(WHOLE, **change)
    monkeypatch.setattr(campaign, "publish_versions", lambda times, **options: report)

    shown = CliRunner().invoke(publish_command, [])
    told = CliRunner().invoke(publish_command, ["--json"])
    (tmp_path / "publish.json").write_text(told.output)

    assert shown.exit_code == told.exit_code == status
    assert "2 versions published to 3 deciders" in shown.output
    assert ("**missed**" in tables(tmp_path)) == bool(status)
