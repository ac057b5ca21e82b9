"""The command `config show`: each setting, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from little_data import invoke

from fastbandit.cli.config import command
from fastbandit.settings.service import all_settings


def test_a_value_of_the_file_names_the_file(tmp_path: Path) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text("[server]\nport = 9000\n")

    lines = invoke(command, "show", "--config", settings).stdout.splitlines()

    (port,) = (line for line in lines if line.startswith("server.port "))
    assert port.startswith("server.port = 9000 ")
    assert port.endswith(f"# file {settings}")


def test_the_password_of_a_url_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTBANDIT_LOG_URL", "postgresql://me:hush@host/x")
    monkeypatch.setenv("FASTBANDIT_SNAPSHOTS_URL", "s3://bucket/x")
    monkeypatch.chdir(tmp_path)

    shown = json.loads(invoke(command, "show", "--json").stdout)

    assert "hush" not in json.dumps(shown)
    assert shown["log.url"]["source"] == "environment FASTBANDIT_LOG_URL"


def test_show_prints_each_value_and_its_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[context]\nnames = ["ä", "b"]\n', encoding="utf-8")

    lines = invoke(command, "show", "--config", path).output.splitlines()

    assert [line.split(" = ")[0] for line in lines] == [own.name for own in all_settings()]
    assert any(
        line.startswith('context.names = ["ä", "b"] ') and line.endswith(f"# file {path}")
        for line in lines
    )


def test_show_prints_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTBANDIT_SERVER_PORT", "81")

    shown = json.loads(invoke(command, "show", "--json").output)

    assert [*shown] == [own.name for own in all_settings()]
    assert shown["server.port"] == {"value": 81, "source": "environment FASTBANDIT_SERVER_PORT"}
    assert shown["arms.columns"] == {"value": [], "source": "default"}


def test_config_show_hides_the_password_of_each_url() -> None:
    environ = {
        "FASTBANDIT_LOG_URL": "postgresql://user:hush@host/db",
        "FASTBANDIT_SNAPSHOTS_URL": "ftp://user:hush@host/folder",
    }
    for options in ([], ["--json"]):
        shown = CliRunner().invoke(command, ["show", *options], env=environ).output

        assert shown.count("user:…@host") == 2
        assert "hush" not in shown
