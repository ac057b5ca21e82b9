"""Nothing that was acknowledged is lost when parts of a cluster are killed or away."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.storage.events import DecisionMade, Event, RewardCame
from fastbandit.storage.postgres_connection import psycopg
from lab.faults import cluster as campaign
from lab.faults.cluster import ClusterReport, cluster_command, disturb_cluster, doubled
from lab.faults.cluster_stage import hanging
from lab.faults.report import tables
from lab.postgres_server import LittleServer

MADE = DecisionMade("a", [1.0], [3], [0.5], 7, 1, 0, 1_000, seq=1, at=1)
CAME = RewardCame("a", 1.0, 3, status="counted", seq=2, at=2)
WHOLE = ClusterReport(
    minutes=30.0,
    seed=0,
    deciders=3,
    shots={"decider": 4, "trainer": 1},
    decisions=100,
    degraded=10,
    failed_selects=0,
    slowest_select_seconds=1.5,
    rewards=90,
    spooled=9,
    lost_decisions=0,
    lost_rewards=0,
    doubled=0,
    versions=3,
    learned=80,
    faults=[],
)


@pytest.fixture(params=[True, False], ids=["whole", "with a loss"])
def judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A campaign that is over at once, and whether it lost nothing."""
    report = WHOLE if request.param else replace(WHOLE, lost_rewards=1)
    monkeypatch.setattr(campaign, "disturb_cluster", lambda minutes, **options: report)
    return bool(request.param)


def test_a_disturbed_cluster_loses_nothing() -> None:
    report = disturb_cluster(0.15, seed=3, arms=50, visitors=2)

    assert report.is_whole, report
    assert sum(report.shots.values()) > 0
    assert report.decisions > 0
    assert report.rewards > 0


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([MADE, CAME], 0),
        ([MADE, MADE, CAME], 1),
        ([MADE, CAME, CAME], 1),
        ([MADE, CAME, RewardCame("a", 1.0, 3, status="duplicate")], 0),
    ],
)
def test_what_a_log_holds_once_too_often_is_doubled(events: list[Event], count: int) -> None:
    assert doubled(events) == count


@pytest.mark.parametrize(
    "change",
    [
        {"failed_selects": 1},
        {"lost_decisions": 1},
        {"lost_rewards": 1},
        {"doubled": 1},
        {"faults": ["one"]},
        {"versions": 1},
    ],
)
def test_a_report_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, **change).is_whole


def test_the_command_fails_where_something_was_lost(judged: bool) -> None:
    done = CliRunner().invoke(cluster_command, ["--minutes", "1"])

    assert done.exit_code == (0 if judged else 1)
    assert "100 decisions (10 degraded), 0 failed" in done.output


def test_the_command_prints_what_the_page_is_written_from(judged: bool, tmp_path: Path) -> None:
    done = CliRunner().invoke(cluster_command, ["--json"])
    (tmp_path / "cluster.json").write_text(done.output)

    assert json.loads(done.output)["decisions"] == 100
    assert ("**missed**" not in tables(tmp_path)) == judged


def test_a_run_that_is_too_short_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(asdict(replace(WHOLE, minutes=29.0))))

    assert "**missed**" in tables(tmp_path)


def test_a_server_that_hangs_answers_again_after_it(own_server: LittleServer) -> None:
    with (
        psycopg.connect(own_server.url) as connection,
        hanging(own_server),
        pytest.raises(psycopg.OperationalError),
    ):
        psycopg.connect(own_server.url, connect_timeout=2)

    with psycopg.connect(own_server.url) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
