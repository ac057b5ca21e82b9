"""Two tables become a folder to serve from: `learn --log`, `init --log`, `evaluate` on the same."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from little_data import invoke
from little_tables import quick_preset, write_tables

from fastbandit.bandit import Bandit
from fastbandit.cli.evaluate import command as evaluate_command
from fastbandit.cli.init import command as init_command
from fastbandit.cli.learn import command as learn_command
from fastbandit.errors import SettingError, UnknownArmError
from fastbandit.features.schema import Schema
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.snapshot_store import SnapshotStore


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with two tables and what was learned from them, and the report."""
    folder = tmp_path_factory.mktemp("shop")
    log, arms = write_tables(folder)
    done = invoke(
        learn_command,
        *("--log", log, "--arms", arms, "--out", folder / "out"),
        *("--preset", quick_preset(folder), "--kind", "title=text", "--json"),
    )
    return folder, json.loads(done.stdout)


def test_the_bandit_of_two_tables_answers_by_name(shop: tuple[Path, dict[str, Any]]) -> None:
    current = SnapshotStore(shop[0] / "out" / "snapshots").current()
    assert current is not None
    assert current.version == 1

    people = [{"city": "Oslo", "age": 30}, {"city": "Rome", "age": None}]
    for bandit in (Bandit.load(current.bandit), FrozenBandit.load(current.frozen)):
        first, second = (str(arm) for arm in bandit.select(people, explore=False).arms)
        assert int(first.removeprefix("item")) % 2 == 0
        assert int(second.removeprefix("item")) % 2 == 1


def test_the_version_of_two_tables_has_their_history(shop: tuple[Path, dict[str, Any]]) -> None:
    current = SnapshotStore(shop[0] / "out" / "snapshots").current()
    assert current is not None

    history = Bandit.load(current.bandit).history

    assert history is not None
    assert len(history) == 300
    assert current.cut.interactions == 0


def test_the_report_says_what_was_learned(shop: tuple[Path, dict[str, Any]]) -> None:
    report = shop[1]

    assert (report["decisions"], report["arms"], report["reward_kind"]) == (300, 6, "binary")
    assert report["checks"]["held_out"] == 60
    for simple in ("constant", "popularity"):
        assert report["checks"][simple]["high"] < 0
    snips = next(one for one in report["judged"]["estimates"] if one["name"] == "snips")
    assert snips["value"] > report["judged"]["logged"]["value"] + 0.1
    assert json.loads((shop[0] / "out" / "report.json").read_text()) == report


def test_settings_and_schemas_lie_beside_the_snapshots(shop: tuple[Path, dict[str, Any]]) -> None:
    out = shop[0] / "out"

    settings = tomllib.loads((out / "service.toml").read_text(encoding="utf-8"))

    assert settings["context"]["schema"] == "context.json"
    assert settings["arms"]["schema"] == "arms.json"
    assert settings["server"]["data_dir"] == str(out)
    assert Schema.load(out / "context.json").names == ("city", "age")
    assert Schema.load(out / "arms.json").key == "item_id"
    assert dict(row[:2] for row in Schema.load(out / "arms.json").rows())["title"] == "text"


def test_the_same_log_is_judged_by_the_schema_of_the_bandit(
    shop: tuple[Path, dict[str, Any]],
) -> None:
    log = shop[0] / "decisions.csv"

    done = invoke(
        evaluate_command,
        *("--log", log, "--policy", shop[0] / "out", "--estimator", "snips", "--json"),
    )

    found = json.loads(done.stdout)
    assert found["estimates"][0]["value"] > found["logged"]["value"] + 0.1


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(SettingError, match=r"empty or not there: found files in .*--out"):
        invoke(learn_command, "--log", "a.csv", "--arms", "b.csv", "--out", tmp_path)


def test_what_stops_learning_leaves_nothing(tmp_path: Path) -> None:
    log, arms = write_tables(tmp_path)
    log.write_text(log.read_text().replace("item3", "gone"))

    with pytest.raises(UnknownArmError, match="the log has 'gone', which is not in it"):
        invoke(learn_command, "--log", log, "--arms", arms, "--out", tmp_path / "out")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["decisions.csv", "items.csv"]


def test_tables_need_all_three_names(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs --log, --arms and --out"):
        invoke(learn_command, "--log", tmp_path / "log.csv")


def test_init_writes_what_columns_mean(tmp_path: Path) -> None:
    log, arms = write_tables(tmp_path)

    done = invoke(init_command, "--log", log, "--arms", arms, "--out", tmp_path / "shop")

    assert "city    category" in done.output
    settings = tomllib.loads((tmp_path / "shop" / "service.toml").read_text(encoding="utf-8"))
    assert settings["arms"]["file"] == str(arms)
    assert Schema.load(tmp_path / "shop" / "context.json").names == ("city", "age")
    assert not (tmp_path / "shop" / "snapshots").exists()
