"""A plan follows from units that are known here, and says what it rests on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.errors import FastbanditError, SettingError
from fastbandit.storage.sqlite_log import SqliteLog
from lab.planning import cluster_plan_units
from lab.planning.cluster_plan import (
    GIB,
    ClusterAsk,
    ClusterPlan,
    assumptions,
    figures,
    plan_cluster,
    verdict,
)
from lab.planning.cluster_plan_page import made_plan, page_of, tables_of
from lab.planning.cluster_plan_scenes import check, play
from lab.planning.cluster_plan_units import (
    Choice,
    LogCosts,
    Ran,
    Units,
    event_bytes,
    line_through,
    log_costs,
    ran_of,
    read_units,
    write_units,
)
from lab.planning.command import cluster_command

ROOT = Path(__file__).parents[3]
UNITS = Units(
    dim=8,
    choices=(Choice(10_000, 20e-6, 0.2), Choice(1_000_000, 40e-6, 0.3)),
    bytes_per_arm=100.0,
    saved_bytes_per_arm=110.0,
    save_s_per_byte=1e-9,
    load_s_per_byte=1e-9,
    index_s_per_arm=2e-5,
    process_bytes=200 * 2**20,
    http_s=30e-6,
    route_s=30e-6,
    service_choose_s=20e-6,
    ran=(
        Ran("8 connections", 8, 0.0, 4_700.0, 1.6e-3, 3e-3),
        Ran("32 connections", 32, 0.0, 10_000.0, 3e-3, 5e-3),
        Ran("5,000", 0, 5e3, 4.9e3, 2e-3, 9e-3),
    ),
    sqlite=LogCosts(commit_s=1e-3, spread=0.3, event_s=10e-6, cpu_s=20e-6, read_s=10e-6),
    postgres=None,
    decision_bytes=400.0,
    reward_bytes=150.0,
    interaction_bytes=600.0,
    train_s=5.0,
    cores=2,
)
ASK = ClusterAsk(arms=100_000_000)


@pytest.fixture
def plan() -> ClusterPlan:
    return plan_cluster(ASK, UNITS)


# -- arithmetic


def test_a_decision_is_extrapolated_along_its_slope() -> None:
    assert UNITS.choose_s(100_000_000) == pytest.approx(80e-6)
    assert UNITS.slope == pytest.approx(0.1505, rel=0.01)


def test_cores_are_the_time_of_all_requests(plan: ClusterPlan) -> None:
    assert plan.select_s == pytest.approx(160e-6)
    assert plan.reward_s == pytest.approx(80e-6)
    assert plan.cores == pytest.approx(1e5 * 160e-6 + 1e4 * 80e-6)
    assert plan.deciders == 28
    assert plan.busy == pytest.approx(0.6)


def test_a_machine_holds_two_snapshots_and_its_processes(plan: ClusterPlan) -> None:
    assert plan.arms_bytes == 10**10
    assert plan.machines == 3
    assert plan.machine_bytes == 2 * 10**10 + 14 * UNITS.process_bytes


def test_the_log_is_split_until_each_part_can_write_it(plan: ClusterPlan) -> None:
    assert (plan.log_per_second, plan.log_source) == (20_000.0, "assumed")
    assert plan.shards == 10
    assert plan.log_bytes_a_day == pytest.approx(86_400 * (1e5 * 400 + 1e4 * 150))


def test_a_limit_that_is_given_or_measured_is_taken_for_the_assumed_one() -> None:
    given = plan_cluster(replace(ASK, log_per_second=500_000.0), UNITS)
    measured = plan_cluster(ASK, replace(UNITS, postgres=replace(UNITS.sqlite, event_s=0.0)))

    assert (given.shards, given.log_source) == (1, "given")
    assert measured.log_per_second == pytest.approx(128_000)
    assert measured.log_source == "measured"


def test_a_version_takes_all_its_steps(plan: ClusterPlan) -> None:
    assert plan.read_s == pytest.approx(1.1e4 * 3_600 * 10e-6)
    assert plan.index_s == pytest.approx(1e8 * 2e-5 * 2 / 16)
    assert plan.push_s == pytest.approx(8 * 1.1e10 / 7e9)
    steps = (plan.read_s, 5.0, plan.index_s, plan.save_s, plan.push_s, plan.load_s)
    assert plan.retrain_s == pytest.approx(sum(steps))


def test_given_replicas_are_taken_as_they_are() -> None:
    plan = plan_cluster(replace(ASK, replicas=20), UNITS)

    assert plan.deciders == 20
    assert plan.busy == pytest.approx(0.84)


def test_what_a_real_service_takes_beyond_its_parts_is_counted() -> None:
    slower = replace(UNITS, ran=(replace(UNITS.ran[0], per_second=5_000.0),))

    assert UNITS.other_s == pytest.approx(0.0, abs=1e-9)
    assert slower.other_s == pytest.approx(100e-6)
    assert plan_cluster(ASK, slower).select_s == pytest.approx(260e-6)


# -- what breaks


def test_the_fullest_part_breaks_first(plan: ClusterPlan) -> None:
    loads = [one.load for one in plan.limits]

    assert loads == sorted(loads, reverse=True)
    assert plan.first.what == "one log"
    assert plan.first.load == pytest.approx(5.5)
    assert "at about 18,000 selects/s" in verdict(plan, ASK)[0]


def test_every_limit_that_is_passed_has_a_cure() -> None:
    ask = replace(ASK, machine_gib=8.0, retrain_minutes=0.1, gbit=0.1, replicas=1)
    plan = plan_cluster(ask, replace(UNITS, interaction_bytes=1e6))

    said = verdict(plan, ask)

    assert {one.what for one in plan.limits if not one.is_met} >= {
        "a machine's memory",
        "the time to retrain",
        "the push of a snapshot",
        "the deciders",
        "one trainer's memory",
    }
    assert len(said) == 1 + sum(not one.is_met for one in plan.limits)


def test_memory_breaks_where_the_arms_do_not_fit() -> None:
    plan = plan_cluster(replace(ASK, selects=10.0, machine_gib=4.0), UNITS)

    assert plan.first.what == "a machine's memory"
    assert plan.first.load == pytest.approx(plan.machine_bytes / (4 * GIB))


# -- rows


def test_every_row_says_where_it_comes_from(plan: ClusterPlan) -> None:
    rows = assumptions(ASK, plan, UNITS)

    assert {row.source for row in rows} == {"given", "measured", "assumed"}
    assert all(row.figure for row in [*rows, *figures(plan, ASK)])
    assert len({row.what for row in rows}) == len(rows)


def test_arms_beyond_what_was_measured_are_marked(plan: ClusterPlan) -> None:
    said = " ".join(row.figure for row in assumptions(ASK, plan, UNITS))

    assert "100 × beyond what was measured" in said


# -- scenes


def test_a_plan_that_is_played_answers_what_it_was_made_for(plan: ClusterPlan) -> None:
    steady, pushed, failed = play(ASK, plan, UNITS)

    assert steady.scene.deciders == 3
    assert steady.became.per_second == pytest.approx(11_000, rel=0.05)
    assert steady.became.failed_share == 0.0
    assert pushed.became.p99_s >= steady.became.p99_s
    assert 0 < failed.became.failed_share < 0.1


def test_the_simulator_is_set_beside_what_ran() -> None:
    closed, _, steady = check(UNITS)

    assert closed.simulated.per_second == pytest.approx(5_000, rel=0.5)
    assert steady.simulated.per_second == pytest.approx(5_000, rel=0.05)
    assert steady.ratio == pytest.approx(1.02, rel=0.05)


# -- measuring


def test_a_group_costs_its_commit_and_each_event() -> None:
    assert line_through({1: 1.01e-3, 101: 2.01e-3}) == pytest.approx((1e-3, 1e-5))


def test_a_load_is_read_by_its_name() -> None:
    fields: dict[str, Any] = {"per_second": 10.0, "p50_ms": 2.0, "p99_ms": 4.0}

    assert ran_of({"name": "8 connections", **fields}) == Ran(
        "8 connections", 8, 0.0, 10.0, 0.002, 0.004
    )
    assert ran_of({"name": "5,000 a second", **fields}).rate == 5_000.0


def test_a_log_is_measured_by_writing_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_plan_units, "_GROUPS", (1, 64))
    monkeypatch.setattr(cluster_plan_units, "_APPENDS", 3)

    costs, interaction_bytes = log_costs(SqliteLog(tmp_path / "events.db"), 3)

    assert costs.commit_s > 0
    assert costs.read_s > 0
    assert 100 < interaction_bytes < 10_000


def test_longer_contexts_weigh_more(tmp_path: Path) -> None:
    few, many = event_bytes(tmp_path / "few.db", 2), event_bytes(tmp_path / "many.db", 20)

    assert many[0] > few[0] + 18 * 5
    assert many[1] == pytest.approx(few[1], rel=0.2)


def test_units_are_stored_in_a_file(tmp_path: Path) -> None:
    both = replace(UNITS, postgres=UNITS.sqlite)
    for number, units in enumerate((UNITS, both)):
        write_units(tmp_path / f"{number}.json", units)
        assert read_units(tmp_path / f"{number}.json") == units


def test_units_are_read_by_the_names_of_before(tmp_path: Path) -> None:
    write_units(tmp_path / "units.json", UNITS)
    text = (tmp_path / "units.json").read_text()
    (tmp_path / "units.json").write_text(text.replace("interaction_bytes", "pair_bytes"))

    assert read_units(tmp_path / "units.json") == UNITS


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"dim": 8}', json.dumps({"dim": 8, "choices": []})]
)
def test_a_file_that_holds_no_units_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "units.json"
    path.write_text(text)

    with pytest.raises(SettingError, match="--units needs a file"):
        read_units(path)


# -- the command


def planned(*options: str, tmp_path: Path) -> Any:
    path = tmp_path / "units.json"
    write_units(path, UNITS)
    words = ["--arms", "1e8", "--units", str(path), *options]
    return CliRunner().invoke(cluster_command, words, catch_exceptions=False)


def test_the_command_prints_every_table(tmp_path: Path) -> None:
    done = planned(tmp_path=tmp_path)

    assert done.exit_code == 0
    for table in tables_of(made_plan(ASK, UNITS)):
        assert table.title in done.output
    assert "First to break: one log" in done.output


def test_the_command_prints_json(tmp_path: Path) -> None:
    report = json.loads(planned("--json", "--selects", "1e4", tmp_path=tmp_path).output)

    assert report["ask"]["selects"] == 10_000.0
    assert report["plan"]["shards"] == 1
    assert report["units"]["dim"] == 8


def test_units_of_other_features_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FastbanditError, match="--dim 16"):
        planned("--dim", "16", tmp_path=tmp_path)


@pytest.mark.parametrize("arms", ["0", "-1", "1.5", "many", "nan", "inf"])
def test_a_number_of_arms_is_a_whole_one(arms: str) -> None:
    done = CliRunner().invoke(cluster_command, ["--arms", arms])

    assert done.exit_code == 2
    assert "whole number" in done.output


def test_a_page_gets_the_plan_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- plan: written by python -m lab plan cluster -->\n<!-- end of plan -->\n"
        "after\n"
    )

    planned("--doc", str(page), tmp_path=tmp_path)

    text = page.read_text()
    assert page_of(made_plan(ASK, UNITS)) in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_the_page_in_the_docs_says_what_its_units_give() -> None:
    page = (ROOT / "docs" / "arithmetic.md").read_text(encoding="utf-8")
    units = read_units(ROOT / "docs" / "arithmetic-units.json")

    assert page_of(made_plan(ASK, units)) in page
