"""Decisions with their rewards, as files for pandas and for anything."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from little_exports import lines, made
from msgspec import structs

from fastbandit.cli.export import command as export_command
from fastbandit.errors import DataError, SettingError
from fastbandit.storage import exports
from fastbandit.storage.events import RewardCame
from fastbandit.storage.exports import FORMATS, export, format_of
from fastbandit.storage.sqlite_log import SqliteLog

# -- formats


def test_a_line_of_json_holds_all_of_a_decision(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", propensities=[0.25], eligible={"price": {"<=": 3}}, epsilon=0.1)])
    log.append([RewardCame("one", 1.0)])

    assert lines(tmp_path) == [
        {
            "seq": 1,
            "at": "2026-01-01T00:00:00Z",
            "decision": "one",
            "context": [0.5, 1.5],
            "arms": ["a"],
            "scores": [0.1],
            "reward": 1.0,
            "rewards": [1.0],
            "propensities": [0.25],
            "version": 2,
            "catalogue": 0,
            "seed": 1,
            "explored": True,
            "epsilon": 0.1,
            "degraded": False,
            "until": "2026-01-01T00:00:00.000010Z",
            "default_reward": -1.0,
            "adds_up": False,
            "eligible": {"price": {"<=": 3}},
            "decided_by": "bandit",
            "other": None,
            "offered": None,
        }
    ]


def test_parquet_holds_what_lines_of_json_hold(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(exports, "_ROWS_A_GROUP", 1)
    log.append([made("one", propensities=[0.25], eligible=["a"]), made("two", (7,))])
    log.append([RewardCame("one", 1.0)])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column("at").type.tz == "UTC"
    one, two = table.to_pylist()
    assert one["at"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert (one["arms"], two["arms"]) == (["a"], ["7"])
    assert (one["reward"], two["reward"], two["rewards"]) == (1.0, None, [None])
    assert (one["eligible"], two["propensities"]) == ('["a"]', None)
    assert list(one) == list(lines(tmp_path)[0])


def test_ids_that_are_numbers_stay_numbers_in_parquet(log: SqliteLog, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    log.append([made("one", (7, 8))])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    assert parquet.read_table(tmp_path / "out.parquet").column("arms").to_pylist() == [[7, 8]]


@pytest.mark.parametrize(("arm", "other"), [(7, 8), (7, "x"), ("7", 8)])
def test_the_arm_of_the_other_is_of_the_kind_of_the_arms(
    arm: str | int, other: str | int, log: SqliteLog, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    log.append([made("one", (arm,), decided_by="baseline", other=other), made("two", (arm,))])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    one, two = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    kind = int if arm == 7 and other == 8 else str
    assert (one["arms"], one["other"], two["other"]) == ([kind(arm)], kind(other), None)
    assert (one["decided_by"], two["decided_by"]) == ("baseline", "bandit")


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_log_gives_an_empty_file(format: str, log: SqliteLog, tmp_path: Path) -> None:
    assert export(tmp_path, tmp_path / "out", format).rows == 0
    assert (tmp_path / "out").exists()


# -- errors and the command


def test_an_export_that_fails_leaves_no_file(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one")])

    def stop(done: int, steps: int, doing: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(tmp_path, tmp_path / "out", "jsonl", progress=stop)

    assert not list(tmp_path.glob("out*"))


def test_a_file_that_cannot_be_written_is_an_error(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a file that can be written"):
        export(tmp_path, tmp_path / "no folder" / "out", "jsonl")


def test_an_unknown_format_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="got 'xml'"):
        export(tmp_path, tmp_path / "out", "xml")


def test_the_command_writes_and_says_what_it_left_out(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one"), made("two", explored=False), RewardCame("two", 1.0)])
    args = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out"), "--format", "dsjson"]

    found = CliRunner().invoke(export_command, [*args, "--since", "2025-12-31"])

    assert found.output == f"1 decision\n1 left out: no reward yet\n{tmp_path / 'out'}\n"
    found = CliRunner().invoke(export_command, [*args, "--until", "2", "--json", "--replace"])
    assert json.loads(found.output)["rows"] == 0


@pytest.mark.parametrize(
    ("name", "format"), [("log.csv", None), ("log.jsonl", "parquet"), ("log.txt", None)]
)
def test_a_file_whose_name_is_of_another_format_is_refused(name: str, format: str | None) -> None:
    with pytest.raises(SettingError, match=rf"got --out {name} and .*--format"):
        format_of(Path(name), format)


@pytest.mark.parametrize(
    ("name", "format", "wanted"),
    [("log.jsonl", None, "jsonl"), ("log", None, "parquet"), ("log.txt", "dsjson", "dsjson")],
)
def test_the_name_of_a_file_tells_its_format(name: str, format: str | None, wanted: str) -> None:
    assert format_of(Path(name), format) == wanted


def test_the_command_does_not_write_over_a_file(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one")])
    (tmp_path / "out.jsonl").write_text("mine")
    args = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]

    with pytest.raises(SettingError, match=r"out\.jsonl is\. Name another, .*--replace"):
        CliRunner().invoke(export_command, args, catch_exceptions=False)
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_a_bound_that_is_neither_number_nor_time_is_refused(tmp_path: Path) -> None:
    args = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out"), "--since", "yesterday"]

    found = CliRunner().invoke(export_command, args)

    assert "needs an event number, or a time" in str(found.exception)


def test_contexts_without_any_name_are_empty_in_parquet(log: SqliteLog, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    log.append([structs.replace(made("one"), context={})])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    assert parquet.read_table(tmp_path / "out.parquet").column("context").to_pylist() == [[]]


def test_contexts_by_name_are_a_column_for_each_name(log: SqliteLog, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    first = {"age": 31, "country": "DE", "likes": ["jazz"], "member": True}
    second = {"age": 2.5, "country": None, "likes": None, "member": False, "new": 1}
    one = structs.replace(made("one"), context=first)
    log.append([one, structs.replace(made("two"), context=second)])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    names = ("age", "country", "likes", "member", "new")
    found = [[row[f"context.{name}"] for name in names] for row in rows]
    assert found == [[31.0, "DE", '["jazz"]', True, None], [2.5, None, None, False, 1.0]]
    assert "context" not in rows[0]
    assert lines(tmp_path)[0]["context"] == first
