"""What `fastbandit learn --log` wrote is served by name, and learned on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from little_data import invoke
from little_tables import quick_preset, write_tables

from fastbandit import Schema
from fastbandit.cli.init import command as init_command
from fastbandit.cli.learn import command as learn_command
from fastbandit.cli.serve import named_by
from fastbandit.errors import SettingError
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from tests.serving.little_service import Caller, run


def learned(folder: Path) -> Config:
    log, arms = write_tables(folder)
    preset = quick_preset(folder)
    invoke(
        learn_command, *("--log", log, "--arms", arms, "--out", folder / "out", "--preset", preset)
    )
    path, data = named_by(None, None, folder / "out")
    return read_config(path, overrides={"server.data_dir": str(data), "learn.fresh": 2})


@pytest.mark.usefixtures("little_training")
def test_two_tables_are_served_by_name_and_learned_on_from(tmp_path: Path) -> None:
    config = learned(tmp_path)

    async def story(ask: Caller) -> list[dict[str, Any]]:
        found = []
        for number in range(6):
            context = {"age": 20 + number, "city": "Oslo"}
            chosen = await ask("POST", "/v1/select", {"context": context})
            assert chosen.status == 200, chosen.body
            decision = chosen.body["decision"]
            reward = await ask("POST", "/v1/reward", {"decision": decision, "value": 1})
            assert reward.status == 200, reward.body
            found.append(chosen.body)
        return found

    answers = run(config, story)
    step = Learner(config).step()

    assert {one["version"] for one in answers} == {1}
    assert (step.did, step.version) == ("published", 2), step.reason


@pytest.mark.usefixtures("little_training")
def test_a_folder_that_init_wrote_keeps_its_settings(tmp_path: Path) -> None:
    log, arms = write_tables(tmp_path)
    tables, out = ("--log", log, "--arms", arms, "--out", tmp_path / "out"), tmp_path / "out"
    invoke(init_command, *tables)
    settings = (out / "service.toml").read_text().replace("# port = ", "port = ")
    (out / "service.toml").write_text(f"{settings}\n# mine\n")
    corrected = (out / "context.json").read_text().replace('"mean": ', '"mean": 1')
    (out / "context.json").write_text(corrected)

    said = invoke(learn_command, *tables, "--preset", quick_preset(tmp_path)).output
    path, data = named_by(None, None, out)

    async def story(ask: Caller) -> Any:
        return (await ask("POST", "/v1/select", {"context": {"age": 3, "city": "Oslo"}})).body

    assert "service.toml is kept, with version 1" in said
    assert (out / "service.toml").read_text().endswith("# mine\n")
    assert (out / "context.json").read_text() == corrected
    config = read_config(path, overrides={"server.data_dir": str(data)})
    assert run(config, story)["version"] == 1


@pytest.mark.usefixtures("little_training")
def test_a_folder_is_learned_into_once(tmp_path: Path) -> None:
    learned(tmp_path)

    with pytest.raises(SettingError, match="empty or not there"):
        learned(tmp_path)


def test_settings_without_schemas_are_not_learned_into(tmp_path: Path) -> None:
    log, arms = write_tables(tmp_path)
    (tmp_path / "out").mkdir()
    invoke(init_command, tmp_path / "out" / "service.toml")

    with pytest.raises(SettingError, match=r"needs context\.schema and arms\.schema"):
        invoke(learn_command, "--log", log, "--arms", arms, "--out", tmp_path / "out")


def test_other_schemas_than_those_of_the_folder_are_refused(tmp_path: Path) -> None:
    log, arms = write_tables(tmp_path)
    tables = ("--log", log, "--arms", arms, "--out", tmp_path / "out")
    invoke(init_command, *tables)
    Schema.infer({"city": ["Oslo", "Rome"]}).save(tmp_path / "other.json")

    with pytest.raises(SettingError, match="by its own schemas"):
        invoke(learn_command, *tables, "--context-schema", tmp_path / "other.json")


@pytest.mark.usefixtures("little_training")
def test_a_schema_that_means_something_else_is_refused(tmp_path: Path) -> None:
    config = learned(tmp_path)
    path = tmp_path / "out" / "context.json"
    path.write_text(path.read_text().replace('"city"', '"town"'))

    async def story(ask: Caller) -> None: ...

    with pytest.raises(SettingError, match="'city' is missing"):
        run(config, story)
