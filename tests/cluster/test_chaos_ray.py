"""Jobs on Ray whose workers and nodes are killed end as they do without kills."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.faults import ray_kills as campaign
from lab.faults.ray_kills import RayReport, Shots, _Looks, ray_command
from lab.faults.report import tables

pytest.importorskip("ray")
WHOLE = RayReport(
    kills=20,
    seed=0,
    nodes=2,
    shots={"train": Shots(6, 4, 7), "score": Shots(5, 5, 8)},
    plain_seconds={"train": 20.0, "score": 5.0},
    slowest_seconds={"train": 60.0, "score": 9.0},
    failed=[],
    other=[],
    seen=90,
    partial=0,
)


def test_jobs_end_by_themselves_with_the_result_they_have_without_kills() -> None:
    options = ["--kills", "2", "--size", "0.05", "--job", "build", "--job", "score", "--json"]

    done = subprocess.run(  # a Ray of its own: that of the other tests is left alone
        [sys.executable, "-m", "lab", "faults", "ray", *options],
        capture_output=True,
        text=True,
    )

    told = json.loads(done.stdout)
    assert done.returncode == 0, (told, done.stderr[-2000:])
    assert told["hits"] >= 2
    assert told["failed"] == told["other"] == []
    assert told["partial"] == 0


@pytest.mark.parametrize(
    "change",
    [{"failed": ["train: gone"]}, {"other": ["score"]}, {"partial": 1}, {"shots": {"a": Shots()}}],
)
def test_a_report_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, **change).is_whole


def test_a_part_that_is_not_whole_is_seen(tmp_path: Path) -> None:
    looks = _Looks(tmp_path, {"part-0.parquet": b"whole", "part-1.parquet": b"whole"})
    (tmp_path / "part-0.parquet").write_bytes(b"whole")
    (tmp_path / "part-1.parquet").write_bytes(b"who")

    looks.look()

    assert (looks.seen, looks.partial) == (2, 1)


@pytest.mark.parametrize(("change", "status"), [({}, 0), ({"other": ["score"]}, 1)])
def test_the_command_fails_where_a_result_is_another(
    change: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = replace(WHOLE, **change)
    monkeypatch.setattr(campaign, "kill_ray", lambda kills, **options: report)

    shown = CliRunner().invoke(ray_command, [])
    told = CliRunner().invoke(ray_command, ["--json"])
    (tmp_path / "ray.json").write_text(told.output)

    assert shown.exit_code == told.exit_code == status
    assert "20 kills on 2 nodes" in shown.output
    assert ("**missed**" in tables(tmp_path)) == bool(status)
